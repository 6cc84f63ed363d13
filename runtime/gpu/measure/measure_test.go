//go:build cuda && linux

package measure

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/emulated"
	"github.com/planc-dev/planc/cuda/kernels"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
)

const inside = "PLANC_MEASURE_INSIDE" // names the folder of kernels to the processes that run the tests

// TestMain runs the tests in a process that finds emulated libraries, once under each policy.
func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" || emulate.Skipped() != "" {
		os.Exit(m.Run())
	}
	code, _ := emulated.RunInside(func(m emulated.Machine, dir string) ([]string, error) {
		sources, images := filepath.Join(dir, "sources"), filepath.Join(dir, "images")
		if err := os.CopyFS(sources, kernels.Sources); err != nil {
			return nil, err
		}
		return []string{inside + "=" + images, "PLANC_EMULATED_PATIENCE=20", "PLANC_EMULATED_GPUS=4"},
			m.CompileKernels(sources, filepath.Join(images, "kernels"), kernels.Files(AttentionShapes(), "bf16",
				FillKernel))
	})
	os.Exit(code)
}

// All GPUs are measured at once. Each kind of work has points, whose times are those of the slowest GPU,
// and all device memory is freed (the log says so when the tests end). Work that is too slow for an
// emulated GPU is listed as left out.
func TestMeasure(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	if os.Getenv("PLANC_EMULATED_ORDER") != emulated.Orders[0] {
		t.Skip("one stream has one order")
	}
	m, err := Run(os.DirFS(os.Getenv(inside)))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.GPUs) != 4 || m.CUDA != "13.5" || m.BLAS == "" || m.NCCL == "" {
		t.Errorf("%+v", m)
	}
	count := map[string]int{}
	for i := range m.Points {
		p := &m.Points[i]
		count[p.Of]++
		if p.Seconds <= 0 || p.Spread < 0 || (p.Of == OfGEMM || p.Of == OfFP8) && p.Flops() <= 0 {
			t.Errorf("%+v", p)
		}
	}
	for of, least := range map[string]int{OfGEMM: 4, OfFP8: 1, OfAttention: 1, OfAttentionGrad: 1, OfCopy: 1,
		OfUpload: 1, OfDownload: 1, OfLaunch: 1, OfReplay: 1,
		// collectives of 2 and of 4 GPUs
		OfAllReduce: 2, OfAllGather: 2, OfReduceScatter: 2, OfAllToAll: 2, OfSend: 2} {
		if count[of] < least {
			t.Errorf("%d points of %s, and %d are wanted", count[of], of, least)
		}
	}
	t.Logf("%.1f s, %d points, %d left out", m.Duration, len(m.Points), len(m.Left))
}

// The time to load kernels and to connect ranks in the first call of a kind is not measured, and does not
// lead to larger calls being left out.
func TestFirstCallIsNotMeasured(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	driver, err := cuda.Open()
	if err != nil {
		t.Fatal(err)
	}
	gpus, err := driver.Devices()
	if err != nil {
		t.Fatal(err)
	}
	c, err := gpus[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	unbind, err := c.Bind()
	if err != nil {
		t.Fatal(err)
	}
	defer unbind()
	b := &bench{barrier: newBarrier(1), out: &Measurement{}}
	b.stream, err = cuda.NewStream(0)
	if err != nil {
		t.Fatal(err)
	}
	defer b.stream.Close()
	var pace pace
	calls := 0
	err = b.point(Point{Of: OfLaunch}, &pace, 1, func() error {
		calls++
		if calls == 1 {
			time.Sleep(time.Duration(2 * slowCall * float64(time.Second)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls < 3 || pace.seconds >= slowCall || !pace.affords(2) {
		t.Errorf("%d calls, of %g s each", calls, pace.seconds)
	}
}
