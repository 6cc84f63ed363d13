//go:build cuda && linux

package gpu

import (
	"encoding/binary"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// drops holds the program's dropouts. Each has a number, and a key that the device derives at the beginning
// of a step from the step's seed and number. A captured graph therefore uses another mask in each step.
type drops struct {
	number map[site]int
	blocks []dropBlock
}

// site identifies a dropout, like [rt.DropoutKey].
type site struct{ segment, layer, key int }

// dropBlock holds the keys of up to dropsEach sites.
type dropBlock struct {
	sites, keys cuda.Memory
	n           int
}

const (
	dropsEach = 512
	siteSize  = 3 * 4 // three int32
)

// DropoutKey returns the device address of the key of one dropout of one layer in the present step. It is
// [rt.DropoutKey] for kernels.
func DropoutKey(r *rt.Rank, segment, layer, key int) uint64 {
	d := deviceOf(r)
	at := site{segment, layer, key}
	n, ok := d.drops.number[at]
	if !ok {
		n = d.drops.newSite(&d.executor, at, d.step.value(seed))
	}
	return uint64(d.drops.blocks[n/dropsEach].keys.Pointer) + uint64(n%dropsEach*8)
}

// newSite gives a dropout its number, and has the device derive its key. It must not be called in a step
// that is captured.
func (s *drops) newSite(d *executor, at site, seed cuda.Pointer) int {
	if s.number == nil {
		s.number = map[site]int{}
	}
	n := len(s.number)
	s.number[at] = n
	if n%dropsEach == 0 {
		s.blocks = append(s.blocks, dropBlock{sites: d.table(dropsEach * siteSize), keys: d.table(dropsEach * 8)})
	}
	b := &s.blocks[n/dropsEach]
	host := d.staging.At(0, siteSize)
	for i, x := range []int{at.segment, at.layer, at.key} {
		binary.NativeEndian.PutUint32(host.Slice()[4*i:], uint32(x))
	}
	rt.Check(d.current.stream.Upload(b.sites.At(int64(b.n*siteSize), siteSize), host))
	d.await("the upload of a dropout's key", d.current.stream.Synchronize)
	b.n++
	b.deriveKeys(d, seed)
	return n
}

// drawKeys has the device derive the keys of all known dropouts.
func (s *drops) drawKeys(d *executor, seed cuda.Pointer) {
	for i := range s.blocks {
		s.blocks[i].deriveKeys(d, seed)
	}
}

// deriveKeys enqueues the kernel that derives the keys. seed is the address of the step's seed and number.
func (b *dropBlock) deriveKeys(d *executor, seed cuda.Pointer) {
	d.call("drop_keys", "i32", 1, b.n, b.keys.Pointer, b.sites.Pointer, seed, b.n)
}
