package cuda

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

// Arguments have C's sizes and alignments, keep their order and their bits.
func TestArgs(t *testing.T) {
	var a Args
	a.Int32(-2).Pointer(0x7f0012345678).Float32(1.5).Float64(math.Pi).Bytes([]byte{1, 2, 3}, 16).Int32(7)
	if want := []uint32{0, 8, 16, 24, 32, 36}; !slices.Equal(a.at, want) {
		t.Errorf("arguments begin at %d, want %d", a.at, want)
	}
	order := binary.NativeEndian
	if int32(order.Uint32(a.data)) != -2 || order.Uint64(a.data[8:]) != 0x7f0012345678 ||
		math.Float32frombits(order.Uint32(a.data[16:])) != 1.5 ||
		math.Float64frombits(order.Uint64(a.data[24:])) != math.Pi || !slices.Equal(a.data[32:35], []byte{1, 2, 3}) ||
		order.Uint32(a.data[36:]) != 7 {
		t.Errorf("% x", a.data)
	}
	a.Reset().Int32(1)
	if len(a.at) != 1 || len(a.data) != 4 {
		t.Errorf("after a reset: %d arguments, %d bytes", len(a.at), len(a.data))
	}
	if n := testing.AllocsPerRun(10, func() { a.Reset().Int32(1).Pointer(2).Float32(3) }); n != 0 {
		t.Errorf("arguments that were made before allocate %g times", n)
	}
	defer func() {
		if recover() == nil {
			t.Error("an extra argument is accepted")
		}
	}()
	for range maxArgs + 1 {
		a.Int32(0)
	}
}
