package runtime

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/rank"
)

// A copy of a parameter that differs in one bit ends the run at the next check, before its checkpoint. Copies of equal
// bits do not.
func TestCheckReplicas(t *testing.T) {
	for name, build := range map[string]func() *rank.Program{
		"whole":   func() *rank.Program { return bigram[float32](4, 0) },
		"sharded": func() *rank.Program { return bigram[float32](4, 1) },
		"hybrid":  hybrid[float32],
	} {
		_, err := train(t, build(), t.TempDir(), CheckReplicas(1))
		must(t, err)
		p := build()
		var faulty *rank.Rank
		forward := p.Segments[0].Forward
		p.Segments[0].Forward = func(r *rank.Rank, b *rank.Block) {
			if r.ID == 2 {
				faulty = r
			}
			forward(r, b)
		}
		dir := t.TempDir()
		_, err = train(t, p, dir, CheckReplicas(3), Set("train.checkpoint.every", 2),
			OnTensors(func(step int, _ *driver.Tensors) error {
				if step == 6 { // element (1, 3) of w
					x := &View[float32](faulty, faulty.Stage.Arena.Params.Offset, vocab*2)[vocab+3]
					*x = math.Float32frombits(math.Float32bits(*x) ^ 1)
				}
				return nil
			}))
		const want = "step 6: rank 0 and rank 2 have different values of parameter w. Copies of a parameter must be " +
			"equal to the bit: a GPU, its memory or a link may be faulty; the last good checkpoint is of step 4"
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if c, _, err := ckpt.Newest(dir + "/checkpoints"); err != nil || c.Manifest.Step != 4 {
			t.Errorf("%s: the newest checkpoint is %+v, %v", name, c, err)
		}
		if _, others := lines(t, dir); others[len(others)-1].Event != "stop" {
			t.Errorf("%s: the last event is %+v", name, others[len(others)-1])
		}
	}
}

// --overfit-batches repeats the first batches, and the run that continues does not go on with them as if they were all
// data.
func TestOverfitBatches(t *testing.T) {
	var read []int64
	source := &counting{drawn: drawn{40, 10}, train: func(g int64) { read = append(read, g) }}
	dir := t.TempDir()
	res, err := train(t, bigram[float64](2, 1), dir, Data(source), OverfitBatches(2), Set("train.steps", 60),
		Set("train.optimizer.weight_decay", 0))
	must(t, err)
	if n := len(read); n < 60*8 || slices.Max(read) != 15 || !slices.Equal(read[:16], read[16:32]) {
		t.Errorf("%d samples were read: %v", n, read[:min(n, 40)])
	}
	usual, err := train(t, bigram[float64](2, 1), t.TempDir(), Set("train.steps", 60),
		Set("train.optimizer.weight_decay", 0))
	if err != nil || !(res.Loss < usual.Loss) {
		t.Errorf("loss %v with two batches, %v with all data, %v", res.Loss, usual.Loss, err)
	}
	// the run that continues must be of the same kind, unless the checkpoint is in another folder
	for _, options := range [][]Option{{Data(source)}, {Data(source), OverfitBatches(1)}} {
		_, err = train(t, bigram[float64](2, 1), dir, append(options, Set("train.steps", 61))...)
		if err == nil || !strings.Contains(err.Error(), "use another folder with --dir") {
			t.Errorf("the run continues on other samples: %v", err)
		}
	}
	res, err = train(t, bigram[float64](2, 1), dir, Data(source), OverfitBatches(2), Set("train.steps", 61))
	if err != nil || res.Steps != 61 {
		t.Errorf("%d steps, %v", res.Steps, err)
	}
	res, err = train(t, bigram[float64](2, 1), t.TempDir(), Data(source), Resume(dir+"/checkpoints/step-00000061"),
		Set("train.steps", 62))
	if err != nil || res.Steps != 62 {
		t.Errorf("%d steps from a checkpoint of another folder, %v", res.Steps, err)
	}
	t.Chdir(t.TempDir())
	res, err = train(t, bigram[float64](2, 1), "", OverfitBatches(2), Set("train.steps", 1))
	if want := filepath.Join("runs", "bigram-overfit-2"); err != nil || res.Dir != want {
		t.Errorf("the folder is %s, %v; want %s", res.Dir, err, want)
	}
	// epochs count the batches that are used
	res, err = train(t, bigram[float64](2, 1), t.TempDir(), OverfitBatches(2), Set("train.epochs", 3))
	if err != nil || res.Steps != 6 {
		t.Errorf("%d steps, %v", res.Steps, err)
	}
}

// counting is drawn, and reports which training samples are read.
type counting struct {
	drawn
	train func(g int64)
}

func (c *counting) Train(g int64, tokens, labels []int32) (int, error) {
	c.train(g)
	return c.drawn.Train(g, tokens, labels)
}
