package passes

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"pgregory.net/rapid"
)

// anyModel draws a small configuration that the drawn degree of tp divides.
func anyModel(t *rapid.T) (spec.Config, ir.Plan) {
	pick := func(name string, xs ...int) int { return rapid.SampledFrom(xs).Draw(t, name) }
	c := rapid.SampledFrom([]spec.Config{gpt2, llama}).Draw(t, "family")
	c.Layers, c.Vocab = pick("layers", 1, 2, 5), rapid.IntRange(3, 70).Draw(t, "vocab")
	c.Hidden, c.FFN, c.HeadDim = pick("hidden", 4, 12, 40), pick("ffn", 8, 24, 40), pick("head_dim", 2, 6)
	c.Heads, c.KVHeads = 8, pick("kv_heads", 1, 2, 4, 8)
	if c.Family == "gpt2" {
		c.KVHeads = 8
	}
	c.DropAttn, c.DropResid, c.DropEmbd = 0, rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "drop"), 0
	c.Tied = rapid.Bool().Draw(t, "tied")
	p := planOf(c, pick("dp", 1, 2, 4), pick("tp", 1, 2, 4, 8), rapid.Bool().Draw(t, "sp"))
	p.SP = p.SP && p.TP > 1
	p.Zero, p.ZeroGroup = pick("zero", 0, 1), pick("zero_group", 1, 2)
	p.MicroBatch, p.MicroBatches = pick("micro_batch", 1, 3), pick("micro_batches", 1, 2)
	drawPipeline(t, &p, c.Layers)
	p.Recompute = rapid.SampledFrom(slices.Sorted(maps.Keys(policies))).Draw(t, "recompute")
	if p.Recompute != "none" {
		p.RecomputeLayers = rapid.IntRange(1, c.Layers).Draw(t, "recompute_layers")
		if p.Recompute == "full" {
			p.RecomputeEvery = rapid.IntRange(1, p.RecomputeLayers).Draw(t, "recompute_every")
		}
		p.RecomputeSplit = p.TP > 1 && !p.SP && p.RecomputeEvery == 1 && rapid.Bool().Draw(t, "recompute_split")
	}
	p.Precision = rapid.SampledFrom(precisions).Draw(t, "precision")
	return c, p
}

// drawPipeline draws a pipeline of two stages, or none.
func drawPipeline(t *rapid.T, p *ir.Plan, layers int) {
	p.Schedule = rapid.SampledFrom([]string{"none", "1f1b", "zb-h1", "zb-v"}).Draw(t, "schedule")
	switch {
	case p.Schedule == "none":
	case p.Schedule != "zb-v":
		p.PP, p.StageLayers = 2, fmt.Sprintf("1,%d", layers-1)
	case layers < 2:
		p.Schedule = "none"
	default:
		p.PP, p.VPP, p.StageLayers = 2, 2, fmt.Sprintf("0,1,%d,0", layers-1)
	}
	if p.PP > 1 {
		p.AxisOrder = "tp,dp,pp"
	}
}

// span is the bytes of a value and the ops during which it is alive.
type span struct {
	v           *ir.Value
	lo, hi      int
	first, last int
}

// overlap reports two values that share a byte while both are alive. Values of one name are one.
func overlap(spans []span) error {
	for i, a := range spans {
		for _, b := range spans[:i] {
			if a.lo < b.hi && b.lo < a.hi && a.first <= b.last && b.first <= a.last && a.v.Name != b.v.Name {
				return fmt.Errorf("%s [%d, %d) of ops %d to %d and %s [%d, %d) of ops %d to %d overlap in %s",
					a.v.Name, a.lo, a.hi, a.first, a.last, b.v.Name, b.lo, b.hi, b.first, b.last, a.v.Place.Region)
			}
		}
	}
	return nil
}

// root is the value whose memory v views.
func root(v *ir.Value) *ir.Value {
	for v.Def != nil && v.Def.Op.View() {
		v = v.Def.Args[0]
	}
	return v
}

// spansOf lists the values of a function that lie in a region, from the op that makes each to the last that reads it.
// What outlives the function, forever says, is alive throughout, but for what a result takes the place of.
func spansOf(p *ir.Program, f *ir.Func, region string, forever bool) []span {
	at, writers := map[*ir.Value]int{}, f.SideWriters()
	var spans []span
	add := func(v *ir.Value, i int) {
		if v.Place.Region == region && v.Kind != ir.Weight && root(v) == v {
			at[v] = len(spans)
			spans = append(spans, span{v, v.Place.Offset, v.Place.Offset + v.Type.LocalBytes(p.Mesh), i, i})
		}
	}
	for _, v := range f.Inputs {
		add(v, -1)
	}
	for i, n := range f.Nodes {
		for _, a := range n.Args {
			if k, ok := at[root(a)]; ok {
				spans[k].last = i
			}
		}
		for _, o := range n.Outs {
			if w := writers[o]; w != nil { // the whole begins with the first of its sides
				o = w.Outs[0]
			}
			if _, known := at[o]; !known {
				add(o, i)
			}
		}
	}
	read := slices.Clone(spans)
	for i := range spans {
		if forever {
			spans[i].first, spans[i].last = -1, len(f.Nodes)
		}
	}
	for i, n := range f.Nodes {
		if !ir.InPlace(n) {
			continue
		}
		x, okX := at[n.Args[0]]
		y, okY := at[n.Outs[len(n.Outs)-1]]
		if okX && okY && spans[x].lo == spans[y].lo && read[x].last == i {
			spans[x].last, spans[y].first = i-1, i
		}
	}
	for _, o := range f.Outputs {
		if k, ok := at[root(o)]; ok {
			spans[k].last = len(f.Nodes)
		}
	}
	return spans
}

// checkMemory is a second opinion on what pass memory laid out.
func checkMemory(p *ir.Program) error {
	for i := range p.Stages {
		if err := checkStage(p, &p.Stages[i]); err != nil {
			return fmt.Errorf("stage %d: %w", i, err)
		}
	}
	return nil
}

func checkStage(p *ir.Program, st *ir.Stage) error {
	end := 0
	for _, r := range st.Arena {
		if r.Offset != end || r.Offset%64 != 0 || r.Size%64 != 0 || r.Size < 0 {
			return fmt.Errorf("region %s is [%d, %d), the one before it ends at %d", r.Name, r.Offset,
				r.Offset+r.Size, end)
		}
		end = r.Offset + r.Size
	}
	temps := st.Region(ir.RegionWorkspace).Size - 2*p.Stream // then dy and dx
	for _, s := range p.Model.Variants() {
		if !p.Uses(s) {
			continue
		}
		for _, f := range s.Funcs() {
			for _, region := range []string{ir.PlaceWork, ir.PlaceSlot} {
				spans := spansOf(p, f, region, region == ir.PlaceSlot)
				for _, x := range spans {
					if x.lo%64 != 0 || region == ir.PlaceWork && x.hi > temps || region == ir.PlaceSlot &&
						x.hi > p.PlaceSize(s.Name, region) {
						return fmt.Errorf("func %s: %s is at [%d, %d) of %s", f.Name, x.v.Name, x.lo, x.hi, region)
					}
				}
				if err := overlap(spans); err != nil {
					return fmt.Errorf("func %s: %w", f.Name, err)
				}
			}
		}
	}
	return checkStack(p, st)
}

// checkStack holds the layers of all buffers apart, and inside the activation region.
func checkStack(p *ir.Program, st *ir.Stage) error {
	end, spare := 0, 0
	for _, c := range st.Chunks {
		if c.Offset != end || c.Size%64 != 0 || c.Buffers < 1 {
			return fmt.Errorf("chunk %d begins at %d with %d buffers of %d, those before end at %d", c.Index, c.Offset,
				c.Buffers, c.Size, end)
		}
		end += c.Size * c.Buffers
		at := 0
		for i, r := range c.Runs {
			s := p.Kind(&r)
			parts, need, more := partsOf(p, &r)
			spare = max(spare, more)
			if r.Offset != at || r.Stride != need {
				return fmt.Errorf("%s begins at %d of its buffer with %d bytes a layer, not at %d with %d", r.Segment,
					r.Offset, r.Stride, at, need)
			}
			at += parts * r.Stride
			if i == len(c.Runs)-1 && len(s.Forward.Outputs) > 0 {
				at += p.Stream
			}
		}
		if at != c.Size {
			return fmt.Errorf("chunk %d fills %d of %d bytes", c.Index, at, c.Size)
		}
	}
	if size := st.Region(ir.RegionActivations).Size; end != st.Spare() || end+spare != size {
		return fmt.Errorf("buffers end at %d, %d of spare memory at %d", end, spare, size)
	}
	return nil
}

// partsOf is how many parts of a buffer a run needs, how long each is, and how much spare memory it needs.
func partsOf(p *ir.Program, r *ir.Run) (parts, size, spare int) {
	s := p.Kind(r)
	saved, stream := p.PlaceSize(s.Name, ir.PlaceSlot), p.Stream
	if s.Forward.Value(StreamName) == nil {
		stream = 0
	}
	switch {
	case r.Every > 0: // a group's first input is in the buffer, the others, and what all save, in the spare memory
		for k := 0; k < r.Count; k += r.Every {
			n := min(r.Every, r.Count-k)
			parts, spare = parts+1, max(spare, n*saved+(n-1)*stream)
		}
		return parts, stream, spare
	case r.Split: // a chunk has one such run
		return r.Count, saved, min(r.Count, 2) * stream
	}
	if s.Weights != nil && slices.ContainsFunc(s.Weights.Inputs, func(v *ir.Value) bool {
		return v.Place.Region == ir.PlaceDY
	}) {
		return r.Count, saved + stream + p.Stream, 0
	}
	return r.Count, saved + stream, 0
}

// No two values that are alive at one time share a byte, in any model and plan.
func TestMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, plan := anyModel(t)
		p, err := Compile(buildIn(c, plan.Precision.Compute), plan,
			rapid.SampledFrom([]ir.Recipe{{Optimizer: "adamw"}, {Optimizer: "sgd"}, {Optimizer: "sgd",
				NoMomentum: true}, {Optimizer: "adamw", Sides: true, VocabMultiple: 8,
				PrepostReceives: true}}).Draw(t, "recipe"),
			Options{Check: true})
		if err != nil {
			t.Skip(err) // a dim that an axis does not divide
		}
		if err := checkMemory(p); err != nil {
			t.Fatalf("%s: %v", plan.Text(), err)
		}
		if err := checkFlat(p); err != nil {
			t.Fatalf("%s: %v", plan.Text(), err)
		}
	})
}

// checkFlat holds the parameters of the flat space apart, and inside their buckets.
func checkFlat(p *ir.Program) error {
	for i := range p.Stages {
		if err := checkFlatStage(p, &p.Stages[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkFlatStage(p *ir.Program, st *ir.Stage) error {
	elems := 0
	for _, k := range st.Buckets {
		if k.Offset != elems || k.Offset%BucketLine != 0 {
			return fmt.Errorf("bucket at %d, the one before it ends at %d", k.Offset, elems)
		}
		elems += k.Elems
		taken := make([]bool, k.Elems)
		for _, c := range k.Pieces {
			for _, s := range p.Slots {
				if s.Segment != c.Segment || s.Class != k.Class {
					continue
				}
				for i := range s.Elems {
					at := c.Offset + s.Offset + i - k.Offset
					if at < 0 || at >= len(taken) || taken[at] {
						return fmt.Errorf("%s.%s of layer %d is at %d of bucket [%d, %d)", s.Segment, s.Param, c.Layer,
							at, k.Offset, k.Offset+k.Elems)
					}
					taken[at] = true
				}
			}
		}
	}
	if size := st.Region(ir.RegionParams).Size; size < elems*p.Plan.Precision.Params.Size() {
		return fmt.Errorf("%d elements in %d bytes", elems, size)
	}
	return nil
}

// The checker of this file does find what is wrong.
func TestMemoryCheckerSees(t *testing.T) {
	for name, spoil := range map[string]func(*ir.Program){
		"workspace": func(p *ir.Program) {
			for _, n := range p.Model.Segments[1].Backward.Nodes {
				for _, o := range n.Outs {
					if o.Place.Region == ir.PlaceWork {
						o.Place.Offset = 0
					}
				}
			}
		},
		"slot": func(p *ir.Program) {
			x := p.Model.Segments[1].Forward.Nodes[0].Outs[0]
			x.Place = ir.Place{Region: ir.PlaceSlot, Offset: p.PlaceSize("block", ir.PlaceSlot)}
		},
		"arena": func(p *ir.Program) { p.Stages[0].Arena[2].Offset -= 64 },
		"stack": func(p *ir.Program) { p.Stages[0].Chunks[0].Runs[1].Stride *= 2 },
	} {
		p := compile(t, build(llama), planOf(llama, 1, 1, false), Options{})
		spoil(p)
		if checkMemory(p) == nil {
			t.Errorf("%s: nothing is found", name)
		}
	}
}
