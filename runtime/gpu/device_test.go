//go:build cuda && linux

package gpu

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cuda/emulated"
	"github.com/planc-dev/planc/cuda/kernels"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/launch"
)

const inside = "PLANC_GPU_INSIDE" // names the folder of modules to the processes that run the tests

// TestMain runs the tests in a process that finds emulated libraries, once under each policy.
func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" || emulate.Skipped() != "" {
		os.Exit(m.Run())
	}
	os.Exit(outside())
}

func outside() int {
	code, _ := emulated.RunInside(func(m emulated.Machine, dir string) ([]string, error) {
		modules := filepath.Join(dir, "modules")
		return []string{inside + "=" + modules, "PLANC_EMULATED_PATIENCE=20", "PLANC_EMULATED_GPUS=4"},
			compile(m, modules)
	})
	return code
}

// compile builds the modules of the tests' programs.
func compile(m emulated.Machine, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := os.CopyFS(dir, kernels.Sources); err != nil {
		return err
	}
	toy, err := os.ReadFile("testdata/toy.cu")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "toy.cu"), toy, 0o666); err != nil {
		return err
	}
	return m.CompileKernels(dir, dir, []string{"move.cu", "reduce.cu", "step.cu", "optimizer.cu", "experts.cu",
		"fp8.cu", "toy.cu"})
}

// images returns the modules of this process.
func images() fs.FS { return os.DirFS(os.Getenv(inside)) }

// history is the result of a run.
type history struct {
	losses, norms []float64
	valid         float64
	params        map[string][]float64
}

// train runs a program. The steps that it leaves out at the end are for a run that continues it.
func train(t *testing.T, p *rt.Program, opts ...rt.Option) (h history, err error) {
	t.Helper()
	if p.Devices != nil && emulate.Skipped() != "" {
		t.Skip(emulate.Skipped())
	}
	h.params = map[string][]float64{}
	opts = append([]rt.Option{rt.Dir(t.TempDir()), rt.Data(drawn{}), rt.Logger(slog.New(slog.DiscardHandler)),
		rt.OnStep(func(s rt.Step) error {
			h.losses, h.norms = append(h.losses, s.Loss), append(h.norms, s.GradNorm)
			return nil
		}), rt.OnTensors(func(step int, x *rt.Tensors) error {
			x.Params(func(name string, _ []int64, x []float64) { h.params[name] = x })
			x.Grads(func(name string, _ []int64, x []float64) { h.params["gradient of "+name] = x })
			x.Copies(func(name string, apart float64) {
				if apart != 0 {
					t.Errorf("step %d: copies of %s are %g apart", step, name, apart)
				}
			})
			return nil
		})}, opts...)
	res, err := rt.Run(t.Context(), p, opts...)
	h.valid = res.ValidLoss
	return h, err
}

// near reports whether two numbers are equal except for rounding.
func near(a, b, tolerance float64) bool {
	return a == b || math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b), 1e-3)
}

func (h *history) compare(t *testing.T, want *history, tolerance float64) {
	t.Helper()
	for i := range want.losses {
		if !near(h.losses[i], want.losses[i], tolerance) || !near(h.norms[i], want.norms[i], tolerance) {
			t.Errorf("step %d: loss %.17g, norm %.17g; on a CPU %.17g and %.17g", i+1, h.losses[i], h.norms[i],
				want.losses[i], want.norms[i])
		}
	}
	if len(h.losses) != len(want.losses) || !near(h.valid, want.valid, tolerance) {
		t.Errorf("%d steps, validation %.17g; on a CPU %d and %.17g", len(h.losses), h.valid,
			len(want.losses), want.valid)
	}
	for name, x := range want.params {
		for i := range x {
			if !near(h.params[name][i], x[i], tolerance) {
				t.Errorf("%s[%d] is %.17g; on a CPU %.17g", name, i, h.params[name][i], x[i])
			}
		}
	}
}

// toys returns plans with every kind of sharding, with and without stages.
func toys() (all []toy) {
	for zero := range 4 {
		for pp := 1; pp <= 2; pp++ {
			all = append(all, toy{pp: pp, zero: zero}, toy{pp: pp, zero: zero, half: true})
		}
	}
	for zero := range 4 {
		all = append(all, toy{pp: 1 + zero%2, zero: zero, half: true, stochastic: true})
	}
	all = append(all, toy{pp: 2, zero: 1, half: true, stochastic: true, optim: rt.SGD})
	return append(all, toy{pp: 1, reduce: true}, toy{pp: 1, reduce: true, half: true}, toy{pp: 2, zero: 1,
		optim: rt.SGD}, toy{pp: 1, optim: rt.Adam},
		toy{pp: 2, zero: 1, optim: rt.SGD, plain: true}, toy{pp: 1, zero: 3, half: true, optim: rt.SGD, plain: true})
}

// A program trains on GPUs as on a CPU, in whichever permitted order the work runs.
func TestEqualsCPU(t *testing.T) { equalsCPU(t, toys()) }

// It also does if its ranks share one GPU.
func TestSharedGPU(t *testing.T) {
	t.Setenv(shareGPU, "1")
	if emulate.Skipped() == "" {
		if name, err := new(machine).Open(&rt.Team{Launch: launch.Alone(4)}); err != nil ||
			!strings.HasPrefix(name, "1 ×") {
			t.Errorf("4 ranks share %q: %v", name, err)
		}
	}
	equalsCPU(t, toys())
}

func equalsCPU(t *testing.T, all []toy) {
	for _, k := range all {
		t.Run(fmt.Sprintf("%+v", k), func(t *testing.T) {
			want, err := train(t, k.program(false))
			if err != nil {
				t.Fatal(err)
			}
			got, err := train(t, onGPUs(k.program(true), images()))
			if err != nil {
				t.Fatal(err)
			}
			tolerance := 1e-12
			if k.half {
				tolerance = 1e-5
			}
			got.compare(t, &want, tolerance)
		})
	}
}

// scaled returns a program whose loss is scaled; at first the gradients are not finite.
func (k toy) scaled(gpu bool) *rt.Program {
	p := k.program(gpu)
	p.Settings.Train.Precision.LossScale = rt.LossScaleSettings{Kind: "dynamic", Init: math.MaxFloat32, Window: 3,
		Hysteresis: 1, Min: 1}
	p.Settings.Train.Steps = 9
	for i := range p.Params {
		p.Params[i].Init.Std = 1.5
	}
	return p
}

// A step with gradients that are not finite is skipped on the device as on a CPU, and the loss scale
// adapts.
func TestSkips(t *testing.T) {
	k := toy{pp: 2, zero: 1, half: true}
	skipped := 0
	count := rt.OnStep(func(s rt.Step) error {
		if s.Skipped {
			skipped++
		}
		return nil
	})
	want, err := train(t, k.scaled(false), count)
	if err != nil {
		t.Fatal(err)
	}
	cpu := skipped
	skipped = 0
	got, err := train(t, onGPUs(k.scaled(true), images()), count)
	if err != nil {
		t.Fatal(err)
	}
	if cpu == 0 || cpu == 9 || skipped != cpu {
		t.Errorf("%d steps were skipped, on a CPU %d", skipped, cpu)
	}
	got.compare(t, &want, 1e-5)
}

// A checkpoint that a GPU saved continues on a CPU, and vice versa.
func TestResumes(t *testing.T) {
	k := toy{pp: 2, zero: 1}
	want, err := train(t, k.program(false))
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []bool{false, true} {
		dir := t.TempDir()
		program := func(gpu bool) *rt.Program {
			if gpu {
				return onGPUs(k.program(true), images())
			}
			return k.program(false)
		}
		_, err := train(t, program(first), rt.Dir(dir), rt.OnStep(func(s rt.Step) error {
			if s.Step == 3 {
				return rt.ErrStop
			}
			return nil
		}))
		if exit := (*rt.ExitError)(nil); !errors.As(err, &exit) || exit.Code != rt.ExitOnRequest {
			t.Fatal(err)
		}
		got, err := train(t, program(!first), rt.Dir(dir))
		if err != nil {
			t.Fatal(err)
		}
		rest := want
		rest.losses, rest.norms = want.losses[3:], want.norms[3:]
		got.compare(t, &rest, 1e-12)
	}
}

// When a rank fails, the others, which wait for it on their devices, end too. The first error is the error
// of the run.
func TestFailureEndsAll(t *testing.T) {
	failureEndsAll(t)
	t.Setenv(shareGPU, "1")
	failureEndsAll(t)
}

func failureEndsAll(t *testing.T) {
	for _, step := range []int{1, 2} { // call by call, and captured
		k := toy{pp: 2, zero: 3}
		p := k.program(true)
		forward := p.Segments[1].Forward
		p.Segments[1].Forward = func(r *rt.Rank, b *rt.Block) {
			if r.ID == 1 && r.StepID == step {
				rt.Check(errors.New("a test's failure"))
			}
			forward(r, b)
		}
		if _, err := train(t, onGPUs(p, images())); err == nil || !strings.Contains(err.Error(), "a test's failure") {
			t.Errorf("step %d: %v", step, err)
		}
	}
}

// A machine with too few GPUs is reported before any work.
func TestTooFewGPUs(t *testing.T) {
	k := toy{pp: 2}
	p := k.program(true)
	t.Setenv(shareGPU, "")
	p.Mesh[1].Size, p.Stages = 4, append(p.Stages, p.Stages...)
	_, err := train(t, onGPUs(p, images()))
	if exit := (*rt.ExitError)(nil); !errors.As(err, &exit) || exit.Code != rt.ExitCannot ||
		!strings.Contains(err.Error(), "8 ranks") {
		t.Error(err)
	}
}
