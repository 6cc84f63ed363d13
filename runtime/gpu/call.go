//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/module"
	"github.com/planc-dev/planc/runtime/num"
)

// call enqueues a kernel of the table on the current stream. The types of the arguments follow the table's
// parameters: addresses, int, int64, uint64, float64. A flag has kind i.
func (d *executor) call(name, types string, rows, cols int, args ...any) {
	d.run(name, types, rows, cols, module.AddArguments(d.args(), name, args))
}

// arenaAddresses returns device addresses of the arena: a memoryPool, or what embeds one.
type arenaAddresses interface{ ptr(at int) cuda.Pointer }

// addr returns the device address of a buffer. It returns nil for an empty buffer, which stands for an
// absent operand.
func addr[T num.Stored | int32](d arenaAddresses, b Buf[T]) cuda.Pointer {
	if b.N == 0 {
		return 0
	}
	return d.ptr(b.At)
}

// bytesOf returns the buffer as the memory range that the copies of package cuda take.
func bytesOf[T num.Stored | int32](d *device, b Buf[T]) cuda.Memory {
	return d.memory(b.At, b.N*size[T]())
}

const partAlign = 256

// computeType returns the type in which kernels on T compute: its size in bytes, and its suffix.
func computeType[T num.Stored]() (bytes int, types string) {
	if size[T]() == 8 {
		return 8, "f64"
	}
	return 4, "f32"
}

// sumScratch returns the bytes of scratch memory that withSums needs for n numbers of G.
func sumScratch[G, T num.Stored](n int) int {
	bytes, _ := computeType[T]()
	if suffix[G]() == computeSuffix[T]() {
		return 0
	}
	return n * bytes
}

func computeSuffix[T num.Stored]() string {
	_, types := computeType[T]()
	return types
}

// withSums runs f with the address at which it accumulates, in T's compute type, the numbers that end up in
// out. This is out itself if it has that type. Otherwise it is the scratch memory: out is widened into it
// first if f adds, and the sums are rounded into out afterwards.
func withSums[G, T num.Stored](d *device, out Buf[G], room cuda.Pointer, adds bool, f func(to cuda.Pointer)) {
	g, a := suffix[G](), computeSuffix[T]()
	if g == a {
		f(addr(d, out))
		return
	}
	if adds {
		d.call("cast", a+"_"+g, 1, out.N, room, addr(d, out), int64(out.N))
	}
	f(room)
	d.call("cast", g+"_"+a, 1, out.N, addr(d, out), room, int64(out.N))
}

// constant returns device memory with the bytes that make returns. The key identifies the contents. The
// bytes are uploaded at the first call, in a step that is not captured.
func (d *executor) constant(key any, make func() []byte) cuda.Pointer {
	if p, ok := d.constants[key]; ok {
		return p
	}
	bytes := make()
	to := d.table(max(len(bytes), 1))
	for at := 0; at < len(bytes); at += stagingBytes {
		n := min(len(bytes)-at, stagingBytes)
		host := d.staging.At(0, int64(n))
		copy(host.Slice(), bytes[at:])
		rt.Check(d.stream().Upload(to.At(int64(at), int64(n)), host))
		d.await("the upload of constants", d.stream().Synchronize)
	}
	d.constants[key] = to.Pointer
	return to.Pointer
}
