package runtime

import (
	"math"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/num"
)

// slow trains the bigram with steps that are small compared with the distance of two numbers of bf16, and returns the
// weights before and after, and the last loss.
func slow(t *testing.T, types Types, stochastic bool, dp int) (before, after []float64, loss float64) {
	p := bigram[float32](dp, 0)
	p.Types, p.StochasticRounding = types, stochastic
	s := &p.Settings.Train
	s.Steps, s.Optimizer.LR, s.Optimizer.WeightDecay, s.Optimizer.ClipNorm = slowSteps, slowRate, 0, 0
	s.Schedule = ScheduleSettings{Kind: "constant"}
	result, err := train(t, p, t.TempDir(), OnTensors(func(step int, ts *driver.Tensors) error {
		ts.Params(func(name string, _ []int64, x []float64) {
			switch {
			case name != "w":
			case step == 1:
				before = slices.Clone(x)
			case step == slowSteps:
				after = slices.Clone(x)
			}
		})
		return nil
	}))
	must(t, err)
	return before, after, result.ValidLoss
}

const (
	slowSteps = 400
	slowRate  = 1e-4
)

// Why: a step of Adam moves a weight by at most the rate, since (1-β1) is √(1-β2) (Kingma and Ba, 2.1). Rounded to the
// nearest, a weight whose neighbours are farther than four rates never moves. With stochastic rounding it goes where it
// goes in f32: along the way of f32's weights the way is 1, but for the noise of rounding, of which a step that moves
// it δ between neighbours u apart adds at most δ·u to the variance.
func TestSmallStepsWithoutMasterCopy(t *testing.T) {
	start, exact, exactLoss := slow(t, Types{}, false, 1)
	stuckAt, stuck, stuckLoss := slow(t, masterless, false, 1)
	_, stochastic, chanceLoss := slow(t, masterless, true, 1)
	along, whole, noise := 0.0, 0.0, 0.0
	for i, x := range stuckAt {
		low := num.BF16{Bits: uint16(math.Float32bits(float32(math.Abs(x))) >> 16)}
		gap := float64(num.BF16{Bits: low.Bits + 1}.Wide() - low.Wide())
		if gap < 4*slowRate {
			continue
		}
		if stuck[i] != x {
			t.Errorf("to the nearest, weight %d moved from %v to %v", i, x, stuck[i])
		}
		way := exact[i] - start[i]
		along += way * (stochastic[i] - x)
		whole += way * way
		noise += way * way * slowSteps * slowRate * gap
	}
	slope, sigma := along/whole, math.Sqrt(noise)/whole
	t.Logf("way %.3f of f32's, σ %.3f; losses: f32 %.4f, nearest %.4f, by chance %.4f", slope, sigma, exactLoss,
		stuckLoss, chanceLoss)
	if whole == 0 || sigma > 0.1 || math.Abs(slope-1) > 5*sigma {
		t.Errorf("by chance weights went %v of the way of f32's, σ %v", slope, sigma)
	}
	if !(chanceLoss < stuckLoss-(stuckLoss-exactLoss)/2) {
		t.Errorf("losses: f32 %v, nearest %v, by chance %v", exactLoss, stuckLoss, chanceLoss)
	}
}

// masterless are types in which parameters in bf16 have no master copy.
var masterless = Types{Compute: F32, Params: BF16, Grads: F32, Reduce: F32, Master: BF16, Moments: F32}
