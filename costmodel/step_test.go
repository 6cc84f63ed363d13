package costmodel

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// Two layers of 1 s forward and 2 s backward, two micro-batches; the first bucket is ready after the last layer.
func twoLayers() *Step {
	return &Step{Stages: []Stage{{Chunks: []Chunk{{Runs: []Layers{{Count: 2, Forward: Cost{Compute: 1},
		Backward: Cost{Compute: 1.5, Comm: 0.5}}}}},
		Buckets: []BucketCost{{Layer: 1, Reduce: 3, Update: 0.25, Gather: 1}, {Layer: 0, Reduce: 1, Update: 0.25,
			Gather: 1}}}},
		Timetable: &ir.Timetable{Micro: 2}, Other: 0.125, Overlap: true}
}

func TestSimulate(t *testing.T) {
	s := twoLayers()
	// Backward of the last micro-batch ends at 4; reductions run from 2 to 5 and from 5 to 6: 2 s exposed. Gathers
	// run from 0.25 to 1.25 and to 2.25 after the updates' start, which end at 0.5: 1.75 s.
	want := Time{Compute: 10, TPComm: 2, DPComm: 2 + 1.75, Optimizer: 0.5, Other: 0.125}
	if got := s.Simulate(); got != want {
		t.Errorf("simulated %+v, want %+v", got, want)
	}
	s.Overlap = false
	if got := s.Simulate().DPComm; got != 4+2 {
		t.Errorf("without overlap %v are exposed, want all 6", got)
	}
}

// Traffic that overlaps compute slows it. In the step above a tenth of the hidden part is lost (2 of 4 s of
// reductions), and a tenth of the gathers that run ahead. Nothing hides the gather of a step's first layer.
func TestInterference(t *testing.T) {
	s := twoLayers()
	s.Stages[0].Chunks[0].Slows = 0.1
	if got := s.Simulate(); math.Abs(float64(got.DPComm-(2+0.2+1.75))) > 1e-12 || got.Compute != 10 {
		t.Errorf("simulated %+v", got)
	}
	s.Ahead = true
	if got := s.Simulate().DPComm; math.Abs(float64(got-(2+0.2+0.2))) > 1e-12 {
		t.Errorf("with gathers ahead %v, want 2.4", got)
	}
	// Layer by layer, the first layer waits for its gather of 1 s, and the other gather is hidden.
	s.ByLayer = true
	if got := s.Simulate().DPComm; math.Abs(float64(got-(2+0.2+1+0.1))) > 1e-12 {
		t.Errorf("with gathers ahead by layer %v, want 3.3", got)
	}
	c := Chunk{Runs: []Layers{{Count: 3, Forward: Cost{Compute: 4}, Backward: Cost{Compute: 4}, Fetch: 3}},
		Contention: Contention{Slows: 0.1}}
	if p := c.Pass(ir.Forward, true); p.Compute != 12 || math.Abs(float64(p.Exposed-0.6)) > 1e-12 {
		t.Errorf("forward beside two gathers of 3 s %+v", p)
	}
	s = &Step{Stages: []Stage{{Chunks: []Chunk{c}}}, Timetable: &ir.Timetable{Micro: 2}, Overlap: true}
	if got := s.Simulate(); math.Abs(float64(got.DPComm-(2*2*0.6+3))) > 1e-12 || got.Total() != s.Total() {
		t.Errorf("a step of gathered layers %+v, in all %v", got, s.Total())
	}
}

// The first forward pass waits, on each stage, for the buckets that a layer reads. A stage's gathers begin with the
// step, not with its first pass. A bucket of which the stage has no layer is read by its last layer.
func TestGathersAhead(t *testing.T) {
	stage := func(chunk int, buckets ...BucketCost) Stage {
		return Stage{Buckets: buckets, Chunks: []Chunk{{Runs: []Layers{{Count: 2, Forward: Cost{Compute: 1}}},
			From: 2 * chunk, Output: 0.5, Host: 0.25}}}
	}
	first := stage(0, BucketCost{Layer: 1, Gather: 1}, BucketCost{Layer: 0, Gather: 2})
	second := stage(1, BucketCost{Layer: 2, Gather: 4}, BucketCost{Segment: 7, Gather: 3})
	for _, c := range []struct {
		stages []Stage
		want   Seconds
	}{
		// Layer 0 begins at 2 instead of 0.25, and layer 1 at 3, when its parameters are there.
		{[]Stage{first}, 1.75},
		// The other stage begins at 3 without gathers, and at 4.75 with them. Its last layer begins at 7 instead of
		// 4: it waits for both of its gathers.
		{[]Stage{first, second}, 3},
	} {
		s := &Step{Stages: c.stages, Timetable: &ir.Timetable{}}
		for i := range c.stages {
			s.Timetable.Chunks = append(s.Timetable.Chunks, []int{i})
		}
		if got := s.gathersAhead(); got != c.want {
			t.Errorf("%d stages wait %v, want %v", len(c.stages), got, c.want)
		}
	}
}

// Parameters that come slower than layers work are waited for, but for the first layer's; gradients go from two
// buffers.
func TestPass(t *testing.T) {
	c := Chunk{Runs: []Layers{{Count: 3, Forward: Cost{Compute: 1}, Backward: Cost{Compute: 1}, Fetch: 3, Scatter: 2}}}
	// Layer 0 begins at 0, layers 1 and 2 when their parameters are there, at 3 and 6; the pass ends at 7.
	if p := c.Pass(ir.Forward, true); p.Total() != 7 || p.Exposed != 4 {
		t.Errorf("forward %+v", p)
	}
	// The stream does 3, 2, 3, 2, 2 s of work, begins at 0 and ends at 12 after the pass's end at 9; in the long run a
	// pass takes 12.
	if p := c.Pass(ir.Backward, true); p.Total() != 12 || p.Tail != 0 {
		t.Errorf("backward %+v", p)
	}
	if p := c.Pass(ir.Backward, false); p.Total() != 3+2*3+3*2 {
		t.Errorf("backward without overlap %+v", p)
	}
	c.Apart = true
	// Layer 0's parameters are gathered during another layer of 1 s.
	if p := c.Pass(ir.Forward, true); p.Total() != 9 {
		t.Errorf("forward of a chunk of several %+v", p)
	}
	c = Chunk{Runs: []Layers{{Count: 4, Forward: Cost{Compute: 1}, Backward: Cost{Compute: 2}, Every: 2}}}
	if p := c.Pass(ir.Backward, true); p.Total() != 12 || p.Recompute != 4 {
		t.Errorf("backward of groups %+v", p)
	}
}

// randomStep is a step of a pipeline with its bound.
func randomStep(r *rand.Rand) (*Step, *Floor) {
	seconds := func() Seconds { return Seconds(r.Float64()) }
	stages, micro := 1+r.IntN(4), 1+r.IntN(6)
	s := &Step{Overlap: true, Timetable: &ir.Timetable{Micro: micro}, Other: seconds()}
	f := &Floor{Micro: micro, Stages: stages, Output: seconds() / 4, Grad: seconds() / 4}
	for i := range stages {
		c := Chunk{Output: f.Output, Grad: f.Grad, Contention: Contention{Slows: r.Float64() / 2,
			Gain: []float64{0, 1.2, 1.6}[r.IntN(3)]}}
		if i == stages-1 {
			c.Output = 0
		}
		if i == 0 {
			c.Grad = 0
		}
		for range 1 + r.IntN(2) {
			c.Runs = append(c.Runs, Layers{Segment: len(c.Runs), From: 2, Count: 1 + r.IntN(3),
				Forward: Cost{Compute: seconds(), Comm: seconds()}, Backward: Cost{Compute: seconds()},
				Fetch: seconds() * Seconds(r.IntN(2)), Scatter: seconds() * Seconds(r.IntN(2))})
		}
		forward, backward := c.Pass(ir.Forward, true), c.Pass(ir.Backward, true)
		f.Forward, f.Backward, f.StageOf = append(f.Forward, forward.Total()), append(f.Backward, backward.Total()),
			append(f.StageOf, i)
		st := Stage{Chunks: []Chunk{c}, Norm: seconds()}
		for range 1 + r.IntN(3) {
			run := c.Runs[r.IntN(len(c.Runs))]
			st.Buckets = append(st.Buckets, BucketCost{Segment: run.Segment, Layer: run.From + r.IntN(run.Count),
				Last: r.IntN(3) == 0, Reduce: seconds(), Update: seconds(), Gather: seconds()})
		}
		s.Stages = append(s.Stages, st)
		s.Timetable.Chunks = append(s.Timetable.Chunks, []int{i})
		var do []ir.Action
		warm := min(micro, stages-1-i)
		for m := range micro + warm {
			if m < micro {
				do = append(do, ir.Action{Kind: ir.Forward})
			}
			if m >= warm {
				do = append(do, ir.Action{Kind: ir.Backward})
			}
		}
		s.Timetable.Do = append(s.Timetable.Do, []ir.Turn{{Actions: append(do, ir.Action{Kind: ir.Finish}), Times: 1}})
	}
	return s, f
}

// The bound is below; no part is negative; slower buckets and messages never make a faster step; overlap never costs.
func TestSimulateLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	bubbles := 0
	for range 500 {
		s, f := randomStep(r)
		before := s.Simulate()
		if floor := f.Seconds() + s.Other; floor > before.Total()*(1+1e-12) {
			t.Errorf("floor %v above %v", floor, before.Total())
		}
		for _, p := range TimeParts {
			if before.Part(p) < 0 {
				t.Errorf("%s is %v", p, before.Part(p))
			}
		}
		if before.PPBubble > 0 && before.PPComm > 0 {
			bubbles++
		}
		s.Stages[0].Buckets[0].Reduce += 0.5
		slower := s.Simulate().Total()
		for i := range s.Stages[:len(s.Stages)-1] {
			s.Stages[i].Chunks[0].Output += 0.5
		}
		if sent := s.Simulate().Total(); sent < slower-1e-12 {
			t.Errorf("%v, with slower messages %v", slower, sent)
		}
		s.Overlap = false
		if apart := s.Simulate().Total(); slower < before.Total()-1e-12 || apart < slower-1e-12 {
			t.Errorf("%v, a slower bucket %v, without overlap %v", before.Total(), slower, apart)
		}
	}
	if bubbles < 100 {
		t.Errorf("only %d draws had a bubble and waited for messages", bubbles)
	}
}

// 1F1B with equal stages: (m+p-1) turns of a forward and a backward (Narayanan et al. 2021, section 2.2).
func TestBubble(t *testing.T) {
	const p, m = 4, 6
	s := &Step{Overlap: true, Timetable: &ir.Timetable{Micro: m}}
	for i := range p {
		s.Stages = append(s.Stages, Stage{
			Chunks: []Chunk{{Runs: []Layers{{Count: 1, Forward: Cost{Compute: 1}, Backward: Cost{Compute: 2}}}}}})
		s.Timetable.Chunks = append(s.Timetable.Chunks, []int{i})
		var do []ir.Action
		for range p - 1 - i {
			do = append(do, ir.Action{Kind: ir.Forward})
		}
		for range m - (p - 1 - i) {
			do = append(do, ir.Action{Kind: ir.Forward}, ir.Action{Kind: ir.Backward})
		}
		for range p - 1 - i {
			do = append(do, ir.Action{Kind: ir.Backward})
		}
		s.Timetable.Do = append(s.Timetable.Do, []ir.Turn{{Actions: append(do, ir.Action{Kind: ir.Finish}), Times: 1}})
	}
	if got := s.Simulate(); got != (Time{Compute: 3 * m, PPBubble: 3 * (p - 1)}) {
		t.Errorf("%+v", got)
	}
}

// Printed parts add up to the printed step: as decimals, exactly.
func TestRounded(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 1000 {
		scale := Seconds(math.Pow(10, r.Float64()*6-4))
		in := Time{Compute: Seconds(r.Float64()) * scale, TPComm: Seconds(r.Float64()) * scale, DPComm: scale / 3,
			Other: scale / 7}
		got, step := in.Rounded()
		if d := math.Abs(float64(step/in.Total()) - 1); d > 5e-5 {
			t.Fatalf("%+v rounds to %v", in, step)
		}
		sum := int64(0)
		exp := 12
		for _, p := range TimeParts {
			sum += units(t, got.Part(p), exp)
		}
		if sum != units(t, step, exp) {
			t.Errorf("parts of %+v add up to %d e-%d, the step is %v", got, sum, exp, step)
		}
	}
}

// units is a duration as its shortest decimal, in units of 10^-exp.
func units(t *testing.T, s Seconds, exp int) int64 {
	text := strconv.FormatFloat(float64(s), 'f', -1, 64)
	whole, frac := text, ""
	for i := range text {
		if text[i] == '.' {
			whole, frac = text[:i], text[i+1:]
		}
	}
	for len(frac) < exp {
		frac += "0"
	}
	n, err := strconv.ParseInt(whole+frac[:exp], 10, 64)
	if err != nil || len(frac) > exp {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

func TestMemoryOf(t *testing.T) {
	c := twoTier(1)
	sizes := map[string]int{ir.RegionParams: 2 << 30, ir.RegionGrads: 4 << 30, ir.RegionMoment1: 4 << 30,
		ir.RegionMoment2: 4 << 30, ir.RegionMaster: 4 << 30}
	m := c.MemoryOf(func(name string) int { return sizes[name] }, Outside{1 << 30, 2 << 30, 3 << 30}, 8, 0.1)
	if m.Total != 24<<30+gpuContext+gpuBuffers || m.Overhead != m.Total-18<<30 ||
		m.OverheadParts != (OverheadParts{gpuContext, 1 << 30, 5<<30 + gpuBuffers}) || m.Capacity != 72<<30 ||
		!m.Fits() || m.Largest() != "optimizer" || m.Over() != 0 {
		t.Errorf("memory %+v", m)
	}
	m.Total = int64(80 * GiB)
	if q := m.Probability(80 * GiB); q != 0.5 {
		t.Errorf("a rank that just fits does so with probability %v", q)
	}
}

// More work never takes less time, and no device beats its roof.
func TestRoofline(t *testing.T) {
	c := twoTier(1)
	d, ok := c.Device(ir.BF16)
	if _, f64 := c.Device(ir.F64); !ok || f64 {
		t.Fatal("the device computes in bf16 and not in f64")
	}
	for k := range numKinds {
		for _, f := range []float64{0, 1e6, 1e12} {
			for _, b := range []Bytes{0, 1e6, 1e9} {
				w := d.Work(k, f, b)
				if w < Seconds(f/float64(d.Peak)) || w < b.Over(c.GPU.MemoryBandwidth) || d.Work(k, 2*f, b) < w ||
					d.Work(k, f, 2*b) < w {
					t.Errorf("kind %d: %g flops and %v take %v", k, f, b, w)
				}
			}
		}
	}
}
