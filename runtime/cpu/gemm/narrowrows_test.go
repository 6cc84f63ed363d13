package gemm

import (
	"math"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/num"
)

// Rows are rounded like num does, except subnormal numbers, with zeros up to a tile's row and nothing
// written past the end.
func TestNarrowRows(t *testing.T) {
	if asm.Best() != asm.AMX {
		t.Skip("no tiles")
	}
	const rows, ld, step, mark = 3, 83, 97, 0x1234
	for words := 1; words <= 70; words++ {
		src := draw[float32](int64(words), rows*ld)
		for i, x := range []float64{math.NaN(), math.Inf(-1), math.MaxFloat32, 1 + 1./256, 1 + 3./256,
			math.Copysign(0, -1), 0x1p-126, 0x1p-130} {
			src[(i*11)%words+i%rows*ld] = float32(x)
		}
		got := slices.Repeat([]uint16{mark}, rows*step)
		want := slices.Clone(got)
		engine16.narrowRows(&got[0], &src[0], 2*step, 4*ld, rows, uintptr(words))
		for i := range rows {
			row := slices.Clone(src[i*ld:][:words])
			for j, x := range row {
				if math.Abs(float64(x)) < 0x1p-126 {
					row[j] = float32(math.Copysign(0, float64(x)))
				}
			}
			num.StoreBits(want[i*step:][:words], row, num.ElemBF16)
			clear(want[i*step+words : i*step+upToTile(words)])
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d words: %x, want %x", words, got, want)
		}
	}
}
