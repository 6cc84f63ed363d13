//go:build cuda && linux

package gpu

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/gemmchoice"
	"github.com/planc-dev/planc/runtime/num"
)

// choicesFile is a file of choices.
type choicesFile struct {
	GPU, CUBLASLt string
	GEMMs         map[string]gemmchoice.Choice
}

// measured writes the choices of a run in which work after a GEMM takes the given milliseconds: three digits for the
// three algorithms, and three more if its epilogue sums the gradient of a bias. It returns the file and its name.
func measured(t *testing.T, times string) (file choicesFile, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "choices.json")
	t.Setenv(gemmchoice.Timing, "1")
	t.Setenv(gemmchoice.File, path)
	t.Setenv("PLANC_EMULATED_TIMES", times)
	if _, err := train(t, onGPUs(multiplying(-1), images())); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	t.Setenv(gemmchoice.Timing, "")
	return file, path
}

// The first step writes the fastest algorithm of each kind of GEMM. Later runs use these, and say so.
func TestMeasuredChoicesAreUsed(t *testing.T) {
	file, path := measured(t, "546")
	kind := "2×4×4 bf16 to f32, A transposed, epilogue 256"
	if len(file.GEMMs) < 6 || file.GEMMs[kind].Seconds != 1e-3 || file.CUBLASLt != "13.1.0" {
		t.Fatalf("%+v", file)
	}
	for kind, c := range file.GEMMs {
		a, err := c.Decode()
		if err != nil || a[5*8] != 1 {
			t.Errorf("%s: algorithm %d, %v; want the second", kind, a[5*8], err)
		}
	}
	var log bytes.Buffer
	p, used := multiplying(-1), map[string]byte{}
	forward := p.Segments[1].Forward
	p.Segments[1].Forward = func(r *rt.Rank, b *rt.Block) {
		forward(r, b)
		if r.ID > 0 {
			return
		}
		for kind, plan := range deviceOf(r).gemmPlans {
			used[gemmchoice.Kind(gemmKind(kind))] = plan.Algorithm()[5*8]
		}
	}
	if _, err := train(t, onGPUs(p, images()), rt.Logger(slog.New(slog.NewTextHandler(&log, nil)))); err != nil {
		t.Fatal(err)
	}
	for kind, a := range used {
		if _, known := file.GEMMs[kind]; !known || a != 1 {
			t.Errorf("%s: algorithm %d is used, want that of the file", kind, a)
		}
	}
	if want := " kinds of GEMMs as measured in " + path; !strings.Contains(log.String(), want) {
		t.Errorf("the run does not report %q:\n%s", want, log.String())
	}
}

// If a GEMM and a separate kernel for the sums of a bias's gradient are faster than its epilogue, they are used, and
// later runs do so too.
func TestFasterSeparateSums(t *testing.T) {
	const kind = "2×4×4 bf16 to f32, A transposed, epilogue 256"
	for times, want := range map[string]bool{"111999": true, "1": false} {
		file, _ := measured(t, times)
		if file.GEMMs[kind].Separate != want {
			t.Errorf("times of %s ms: %+v, want separate %v", times, file.GEMMs[kind], want)
		}
		p, tried := multiplying(-1), 0
		forward := p.Segments[1].Forward
		p.Segments[1].Forward = func(r *rt.Rank, b *rt.Block) {
			forward(r, b)
			if r.ID > 0 {
				return
			}
			at := r.Stage.Arena.Workspace.Offset
			a, c := View[num.BF16](r, at, 16), Buf[float32]{at + 64, 8}
			if MatMulBiasGrad(r, c, Buf[float32]{at + 128, 4}, a, a, 2, 4, 4, true, false, false) == want {
				t.Errorf("times of %s ms: the epilogue is used: %v", times, !want)
			}
			tried++
		}
		if _, err := train(t, onGPUs(p, images())); err != nil || tried == 0 {
			t.Errorf("%d calls, %v", tried, err)
		}
	}
}
