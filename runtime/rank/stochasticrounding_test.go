package rank

import (
	"bytes"
	"io"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rng"
	"github.com/planc-dev/planc/runtime/tensors"
)

// stochastic are what rounds so.
var stochastic = program.Types{Compute: program.F32, Params: program.BF16, Grads: program.F32, Reduce: program.F32,
	Master: program.BF16, Moments: program.F32}

// large is a program of two layers of one matrix [rows@rowAxes, cols@colAxes] of more than a block of numbers, and a
// vector, in bf16. Its flat space is padded for 2 shards over dp.
func large(tp, dp int, rowAxes, colAxes []string, shard bool) *Program {
	s := program.Stage{
		Buckets: []program.Bucket{{Elems: 12800, Reduce: -1, Sum: 0, Shard: -1, ReplicatedOver: []string{"dp"},
			Pieces: []program.Piece{{Segment: 0, Layer: 0, Offset: 0}, {Segment: 1, Layer: 0, Offset: 6305},
				{Segment: 0, Layer: 1, Offset: 6400}}}},
		Arena: program.Arena{Size: 4 * 51200, Params: program.Region{Offset: 0, Size: 25600},
			Grads:   program.Region{Offset: 51200, Size: 51200},
			Moment1: program.Region{Offset: 2 * 51200, Size: 51200}, Moment2: program.Region{Offset: 3 * 51200,
				Size: 51200}},
	}
	if shard {
		s.Buckets[0].Shard = 0
	}
	idle := func(*Rank, *Block) {}
	return &Program{
		ProgramData: ProgramData{Elem: program.F32, Types: stochastic, StochasticRounding: true,
			Mesh:   []program.Axis{{Name: "tp", Size: tp}, {Name: "dp", Size: dp}},
			Groups: []program.Group{{Axes: []string{"dp"}}},
			Params: []program.Param{
				{Name: "layers.{layer}.w", Layers: 2, Dims: []program.Dim{{Name: "rows", Size: 90, Axes: rowAxes},
					{Name: "cols", Size: 70, Axes: colAxes}},
					Places: []program.Place{{Segment: 0, Class: 0, Offset: 3}}, Init: program.Init{Kind: program.Normal,
						Std: 1}, Decay: true},
				{Name: "norm", Layers: 1, Dims: []program.Dim{{Name: "cols", Size: 70, Axes: nil}},
					Places: []program.Place{{Segment: 1, Class: 0, Offset: 0}}, Init: program.Init{Kind: program.Ones}},
			},
			Batch:  program.BatchLayout{MicroBatch: 1, MicroBatches: 1, Replicas: 1, GlobalBatch: 1},
			Stages: []program.Stage{s}},
		Segments: []Segment{{SegmentData: SegmentData{Name: "layers"}, Forward: idle, Backward: idle},
			{SegmentData: SegmentData{Name: "norm"}, Forward: idle, Backward: idle}},
	}
}

// startRanks returns the ranks of a program, whose communication goroutines run until the test ends.
func startRanks(t *testing.T, p *Program) []*Rank {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	var ranks []*Rank
	world := comm.NewWorld(p.CommMesh(), 0)
	for id := range p.MeshSize() {
		r, err := New(p, world, id)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, r)
		go r.Serve()
		t.Cleanup(r.CloseJobs)
	}
	return ranks
}

// onAll runs f on all ranks concurrently.
func onAll(ranks []*Rank, f func(*Rank)) {
	var all sync.WaitGroup
	for _, r := range ranks {
		all.Go(func() { f(r) })
	}
	all.Wait()
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
	ranks := startRanks(t, p)
	onAll(ranks, func(r *Rank) {
		r.Initialize(9)
		r.Seed, r.Clip = 9, 0.5
		for step := range 2 {
			r.Hyper = Hyper{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Momentum: 0.9, T: step + 1}
			for _, part := range tensors.Of(&p.ProgramData, r.Coord) {
				part.Runs(0, part.Local, func(local, logical, n int) {
					grads := tensors.View[float32](&r.Store, r.GradAt(0, part.Offset+local), n)
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
	})
	stores := &tensors.Stores{}
	for _, r := range ranks {
		stores.All = append(stores.All, &r.Store)
	}
	stores.Mine = stores.All
	var out bytes.Buffer
	content := stores.Contents()[0]
	for i, x := range content.Tensors {
		if err := content.Fill(i, &out); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(&out, x.Name)
	}
	return out.Bytes()
}

// Of equal gradients every sharding makes equal parameters, to the bit: an element's chance is its own, wherever it
// lies.
func TestChanceIsTheSameOnEverySharding(t *testing.T) {
	for _, optim := range []program.OptimizerKind{program.AdamW, program.SGD} {
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

// Biases of experts are rounded stochastically too: a rate of 0.3 of what lies between two numbers moves 0.3 of them.
func TestChanceOfExpertBias(t *testing.T) {
	const n = 4096
	p := large(1, 1, nil, nil, false)
	p.Params = []program.Param{{Name: "bias", Layers: 1, Dims: []program.Dim{{Name: "candidate", Size: n, Axes: nil}},
		Places:  []program.Place{{Segment: 0, Class: 0, Offset: 0}},
		Choices: 1}}
	p.Segments = p.Segments[:1]
	p.Stages[0].Buckets[0].Pieces = []program.Piece{{Segment: 0, Layer: 0, Offset: 0}}
	r := startRanks(t, p)[0]
	for i := range n {
		tensors.View[num.BF16](&r.Store, 0, n)[i] = num.ToBF16(1)
	}
	r.Hyper = Hyper{BiasRate: 0.3 * 0x1p-7, T: 1}
	p.Batch.GlobalBatch, p.Batch.SeqLen = 1, 1 // who gets none is short of a choice
	Optimize[float32](r, 0)
	up := 0
	for _, x := range tensors.View[num.BF16](&r.Store, 0, n) {
		if x.Wide() > 1 {
			up++
		}
	}
	if share := float64(up) / n; math.Abs(share-0.3) > 5*math.Sqrt(0.3*0.7/n) {
		t.Errorf("%v of the biases moved, want 0.3", share)
	}
}
