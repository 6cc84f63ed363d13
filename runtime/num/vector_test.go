package num_test

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// Slices convert to the same bits with every instruction set, for all lengths; NaN stays NaN.
func TestVectors(t *testing.T) {
	src := make([]float32, 1<<16)
	for i := range src {
		src[i] = math.Float32frombits(uint32(i)*0x10001 ^ 0x8000*uint32(i&1) + uint32(i>>3))
	}
	defer cpu.Use(cpu.Best())
	for isa := cpu.Portable; isa <= cpu.Best(); isa++ {
		cpu.Use(isa)
		for _, n := range []int{0, 1, 7, 8, 15, 16, 17, 33, len(src)} {
			b, h, wide := make([]num.BF16, n+1), make([]num.F16, n+1), make([]float32, n)
			num.Store(b, src[:n])
			num.Store(h, src[:n])
			for i, x := range src[:n] {
				if x != x {
					if y := b[i].Wide(); y == y {
						t.Fatalf("%v: NaN became %v", isa, y)
					}
					if y := h[i].Wide(); y == y {
						t.Fatalf("%v: NaN became %v", isa, y)
					}
				} else if b[i] != num.ToBF16(x) || h[i] != num.ToF16(x) {
					t.Fatalf("%v: %v (%#x) became %v and %v, want %v and %v", isa, x, math.Float32bits(x), b[i], h[i],
						num.ToBF16(x), num.ToF16(x))
				}
			}
			if (b[n] != num.BF16{} || h[n] != num.F16{}) {
				t.Fatalf("%v: more than %d were written", isa, n)
			}
			for i, load := range []func(){func() { num.Load(wide, b[:n]) }, func() { num.Load(wide, h[:n]) }} {
				load()
				for j, got := range wide {
					want := b[j].Wide()
					if i == 1 {
						want = h[j].Wide()
					}
					if got != want && (got == got || want == want) {
						t.Fatalf("%v: reads %v, want %v", isa, got, want)
					}
				}
			}
		}
	}
}
