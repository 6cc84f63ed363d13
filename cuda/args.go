package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Pointer is an address in a device's memory.
type Pointer uint64

// Args holds the arguments of a kernel in the order of its parameters. Each has the size and the alignment
// of the parameter's C type. The zero value is ready for use. Args can be launched any number of times.
type Args struct {
	data []byte
	at   []uint32 // offset in data of each argument
}

// maxArgs is the maximum number of arguments of a launch. open.c has the same limit.
const maxArgs = 128

// Reset removes the arguments and keeps the memory.
func (a *Args) Reset() *Args {
	a.data, a.at = a.data[:0], a.at[:0]
	return a
}

// place reserves space for an argument of size bytes, and returns it.
func (a *Args) place(size, align int) []byte {
	if len(a.at) == maxArgs {
		panic(fmt.Sprintf("cuda: a kernel has more than %d arguments", maxArgs))
	}
	for len(a.data)%align != 0 {
		a.data = append(a.data, 0)
	}
	from := len(a.data)
	a.at = append(a.at, uint32(from))
	a.data = append(a.data, make([]byte, size)...)
	return a.data[from:]
}

// Pointer adds a pointer.
func (a *Args) Pointer(p Pointer) *Args { return a.Uint64(uint64(p)) }

// Int32 adds an int.
func (a *Args) Int32(v int32) *Args {
	binary.NativeEndian.PutUint32(a.place(4, 4), uint32(v))
	return a
}

// Uint64 adds a size_t or any other 64-bit integer.
func (a *Args) Uint64(v uint64) *Args {
	binary.NativeEndian.PutUint64(a.place(8, 8), v)
	return a
}

// Float32 adds a float.
func (a *Args) Float32(v float32) *Args {
	binary.NativeEndian.PutUint32(a.place(4, 4), math.Float32bits(v))
	return a
}

// Float64 adds a double.
func (a *Args) Float64(v float64) *Args { return a.Uint64(math.Float64bits(v)) }

// Bytes adds a struct by value, such as a tensor map. C aligns it at align bytes.
func (a *Args) Bytes(v []byte, align int) *Args {
	copy(a.place(len(v), align), v)
	return a
}
