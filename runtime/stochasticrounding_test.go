package runtime

import (
	"bytes"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/rng"
	"github.com/planc-dev/planc/runtime/tensors"
)

// byChance are what rounds so.
var byChance = Types{Compute: F32, Params: BF16, Grads: F32, Reduce: F32, Master: BF16, Moments: F32}

// large is a program of two layers of one matrix [rows@rowAxes, cols@colAxes] of more than a block of numbers, and a
// vector, in bf16. Its flat space is padded for 2 shards over dp.
func large(tp, dp int, rowAxes, colAxes []string, shard bool) *Program {
	s := Stage{
		Buckets: []Bucket{{Elems: 12800, Reduce: -1, Sum: 0, Shard: -1, ReplicatedOver: []string{"dp"},
			Pieces: []Piece{{Segment: 0, Layer: 0, Offset: 0}, {Segment: 1, Layer: 0, Offset: 6305},
				{Segment: 0, Layer: 1, Offset: 6400}}}},
		Arena: Arena{Size: 4 * 51200, Params: Region{Offset: 0, Size: 25600}, Grads: Region{Offset: 51200, Size: 51200},
			Moment1: Region{Offset: 2 * 51200, Size: 51200}, Moment2: Region{Offset: 3 * 51200, Size: 51200}},
	}
	if shard {
		s.Buckets[0].Shard = 0
	}
	idle := func(*Rank, *Block) {}
	return &Program{
		ProgramData: ProgramData{Elem: F32, Types: byChance, StochasticRounding: true,
			Mesh:   []Axis{{Name: "tp", Size: tp}, {Name: "dp", Size: dp}},
			Groups: []Group{{Axes: []string{"dp"}}},
			Params: []Param{
				{Name: "layers.{layer}.w", Layers: 2, Dims: []Dim{{Name: "rows", Size: 90, Axes: rowAxes},
					{Name: "cols", Size: 70, Axes: colAxes}},
					Places: []Place{{Segment: 0, Class: 0, Offset: 3}}, Init: Init{Kind: Normal, Std: 1}, Decay: true},
				{Name: "norm", Layers: 1, Dims: []Dim{{Name: "cols", Size: 70, Axes: nil}},
					Places: []Place{{Segment: 1, Class: 0, Offset: 0}}, Init: Init{Kind: Ones}},
			},
			Batch:  BatchLayout{MicroBatch: 1, MicroBatches: 1, Replicas: 1, GlobalBatch: 1},
			Stages: []Stage{s}},
		Segments: []Segment{{SegmentData: SegmentData{Name: "layers"}, Forward: idle, Backward: idle},
			{SegmentData: SegmentData{Name: "norm"}, Forward: idle, Backward: idle}},
	}
}

// start returns the running ranks of a program.
func start(t *testing.T, p *Program) *crew {
	t.Helper()
	must(t, p.validate())
	c, err := newCrew(p, 0, nil)
	must(t, err)
	t.Cleanup(c.close)
	return c
}

var larges = map[string]*Program{
	"whole":          large(1, 1, nil, nil, false),
	"zero":           large(1, 2, nil, nil, true),
	"columns":        large(2, 1, nil, []string{"tp"}, false),
	"columns, zero":  large(2, 2, nil, []string{"tp"}, true),
	"rows of 7":      large(7, 1, []string{"tp"}, nil, false), // 6 · 13 + 12: padded
	"columns of 4":   large(4, 1, nil, []string{"tp"}, false), // 3 · 18 + 16
	"both":           large(2, 2, []string{"dp"}, []string{"tp"}, false),
	"rows over both": large(2, 2, []string{"dp", "tp"}, nil, false),
}

// updated are the parameters after two updates whose gradients are drawn by the element's name and number in the whole.
func updated(t *testing.T, p *Program) []byte {
	c := start(t, p)
	must(t, c.do(func(r *Rank) {
		r.Initialize(9)
		r.Seed, r.Clip = 9, 0.5
		for step := range 2 {
			r.Hyper = Hyper{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Momentum: 0.9, T: step + 1}
			for _, part := range tensors.Of(&p.ProgramData, r.Coord) {
				part.Runs(0, part.Local, func(local, logical, n int) {
					grads := View[float32](r, r.GradAt(0, part.Offset+local), n)
					key := rng.KeyString(uint64(step), part.Name)
					for i := range grads {
						grads[i] += float32(rng.Normal(key, uint64(logical+i)))
					}
				})
			}
			Optimize[float32](r, 0)
			StartGather(r, 0)
			WaitGather(r, 0)
		}
	}))
	var out bytes.Buffer
	content := c.stores.Contents()[0]
	for i, x := range content.Tensors {
		must(t, content.Fill(i, &out))
		_, _ = io.WriteString(&out, x.Name)
	}
	return out.Bytes()
}

// Of equal gradients every sharding makes equal parameters, to the bit: an element's chance is its own, wherever it
// lies.
func TestChanceIsTheSameOnEverySharding(t *testing.T) {
	for _, optim := range []OptimizerKind{AdamW, SGD} {
		var want, nearest []byte
		for _, name := range append([]string{"whole"}, sortedNames(larges)...) {
			p := *larges[name]
			p.Optim = optim
			got := updated(t, &p)
			if want == nil {
				p.StochasticRounding = false
				want, nearest = got, updated(t, &p)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%v, %s: other parameters", optim, name)
			}
		}
		if bytes.Equal(want, nearest) {
			t.Errorf("%v: parameters are those that are rounded to the nearest", optim)
		}
	}
}

func sortedNames(m map[string]*Program) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Biases of experts are rounded by chance too: a rate of 0.3 of what lies between two numbers moves 0.3 of them.
func TestChanceOfExpertBias(t *testing.T) {
	const n = 4096
	p := large(1, 1, nil, nil, false)
	p.Params = []Param{{Name: "bias", Layers: 1, Dims: []Dim{{Name: "candidate", Size: n, Axes: nil}},
		Places:  []Place{{Segment: 0, Class: 0, Offset: 0}},
		Choices: 1}}
	p.Segments = p.Segments[:1]
	p.Stages[0].Buckets[0].Pieces = []Piece{{Segment: 0, Layer: 0, Offset: 0}}
	c := start(t, p)
	r := c.ranks[0]
	for i := range n {
		View[num.BF16](r, 0, n)[i] = num.ToBF16(1)
	}
	r.Hyper = Hyper{BiasRate: 0.3 * 0x1p-7, T: 1}
	p.Batch.GlobalBatch, p.Batch.SeqLen = 1, 1 // who gets none is short of a choice
	must(t, c.do(func(r *Rank) { Optimize[float32](r, 0) }))
	up := 0
	for _, x := range View[num.BF16](r, 0, n) {
		if x.Wide() > 1 {
			up++
		}
	}
	if share := float64(up) / n; math.Abs(share-0.3) > 5*math.Sqrt(0.3*0.7/n) {
		t.Errorf("%v of the biases moved, want 0.3", share)
	}
}

// slow trains the bigram with steps that are small beside what lies between two numbers of bf16, and returns the
// weights before and after, and the last loss.
func slow(t *testing.T, types Types, chance bool, dp int) (before, after []float64, loss float64) {
	p := bigram[float32](dp, 0)
	p.Types, p.StochasticRounding = types, chance
	s := &p.Settings.Train
	s.Steps, s.Optimizer.LR, s.Optimizer.WeightDecay, s.Optimizer.ClipNorm = slowSteps, slowRate, 0, 0
	s.Schedule = ScheduleSettings{Kind: "constant"}
	result, err := train(t, p, t.TempDir(), OnTensors(func(step int, ts *Tensors) error {
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
// nearest, a weight whose neighbours are farther than four rates never moves. By chance it goes where it goes in f32:
// along the way of f32's weights the way is 1, but for the noise of rounding, of which a step that moves it δ between
// neighbours u apart adds at most δ·u to the variance.
func TestSmallStepsWithoutMasterCopy(t *testing.T) {
	start, exact, exactLoss := slow(t, Types{}, false, 1)
	stuckAt, stuck, stuckLoss := slow(t, byChance, false, 1)
	_, chance, chanceLoss := slow(t, byChance, true, 1)
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
		along += way * (chance[i] - x)
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
