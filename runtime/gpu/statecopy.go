//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// stagingBytes is the size of the staging memory: the maximum of one copy.
const stagingBytes = 16 << 20

// Upload uploads a part of the host's arena to the device.
func (d *executor) Upload(at, bytes int) {
	d.inPieces(at, bytes, func(host []byte, pinned cuda.Pinned, memory cuda.Memory) {
		copy(pinned.Slice(), host)
		rt.Check(d.compute.stream.Upload(memory, pinned))
		d.await("a copy between host and device", d.compute.stream.Synchronize)
	})
}

// Download downloads a part of the device's arena to the host.
func (d *executor) Download(at, bytes int) {
	d.inPieces(at, bytes, func(host []byte, pinned cuda.Pinned, memory cuda.Memory) {
		rt.Check(d.compute.stream.Download(pinned, memory))
		d.await("a copy between host and device", d.compute.stream.Synchronize)
		copy(host, pinned.Slice())
	})
}

// inPieces cuts a part of the arena into pieces that fit the staging memory.
func (d *executor) inPieces(at, bytes int, move func(host []byte, pinned cuda.Pinned, memory cuda.Memory)) {
	for end := at + bytes; at < end; at += stagingBytes {
		n := min(end-at, stagingBytes)
		move(d.rank.Arena[at:at+n], d.staging.At(0, int64(n)), d.memory(at, n))
	}
}
