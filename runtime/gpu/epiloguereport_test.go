//go:build cuda && linux

package gpu

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/num"
)

// refuse makes the emulated cuBLASLt refuse epilogues of GEMMs with small leading dimensions.
const refuse = "PLANC_EMULATED_EPILOGUES"

// A GEMM with a bias, and one with a residual too, has the same bits if cuBLASLt refuses the epilogue. The first such
// call finds that out. The sums are small integers, so that the residual is the difference between the two.
func TestBiasWithoutEpilogue(t *testing.T) {
	withoutTable(t)
	sum := func() (x []float32, refused int) {
		p := toy{pp: 1}.program(true)
		forward := p.Segments[0].Forward
		p.Segments[0].Forward = func(r *rt.Rank, b *rt.Block) {
			if d := deviceOf(r); r.ID == 0 && x == nil {
				w := &scratchWriter{r, r.Stage.Arena.Workspace.Offset}
				a, _ := put[num.BF16](w, 12, 1)
				b, _ := put[num.BF16](w, 12, 2)
				bias, _ := put[num.BF16](w, 4, 3)
				c, _ := put[num.BF16](w, 12, 0)
				from, residual := put[num.BF16](w, 12, 4)
				both, _ := put[num.BF16](w, 12, 0)
				for range 2 {
					MatMulOn(r, c, bias, a, b, 3, 4, 3, false, false)
					MatMulOnBoth(r, AddingGEMM[num.BF16]{C: both, Residual: from, Bias: bias, A: a, B: b,
						M: 3, N: 4, K: 3})
				}
				x, refused = append(got(w, c), got(w, both)...), len(d.refused)
				for i, add := range residual {
					if x[12+i] != x[i]+add {
						t.Errorf("with the residual %g, sum %d is %g instead of %g", add, i, x[12+i], x[i]+add)
					}
				}
				for _, no := range d.refused {
					if !no {
						refused--
					}
				}
			}
			forward(r, b)
		}
		if _, err := train(t, onGPUs(p, images())); err != nil {
			t.Fatal(err)
		}
		return x, refused
	}
	want, none := sum()
	t.Setenv(refuse, "8")
	got, one := sum()
	if none != 0 || one != 1 {
		t.Errorf("%d and %d epilogues are refused, want 0 and 1", none, one)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("without the epilogue, sum %d is %g, with it %g", i, got[i], want[i])
		}
	}
}

// A run says once which epilogues cuBLASLt refuses, and trains on.
func TestReportsRefusedEpilogues(t *testing.T) {
	for _, c := range []struct{ by, want string }{
		{"", ""},
		{"16", `msg=found what="cuBLASLt 13.1.0 refuses 5 of 5 epilogues of GEMMs (M × N × K): ` +
			"GELU of 2 × 8 × 4, GELU's gradient of 2 × 8 × 4, bias and GELU of 2 × 8 × 4, bias of 2 × 8 × 4 " +
			"and 1 more; " +
			`there, planc's own kernel reads and writes the result once more"`},
	} {
		t.Setenv(refuse, c.by)
		var log bytes.Buffer
		if _, err := train(t, onGPUs(multiplying(-1), images()),
			rt.Logger(slog.New(slog.NewTextHandler(&log, nil)))); err != nil {
			t.Fatal(err)
		}
		text := log.String()
		if n := strings.Count(text, "refuses"); !strings.Contains(text, c.want) || n != min(len(c.want), 1) {
			t.Errorf("%q: %s", c.by, text)
		}
	}
}
