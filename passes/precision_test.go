package passes

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// mixed is bf16 as the preset has it.
var mixed = ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32,
	Moments: ir.F32}

// precisions are those that tests draw from: whole, mixed, and mixed in each field.
var precisions = []ir.Precision{
	ir.FullPrecision(ir.F32), ir.FullPrecision(ir.F64), mixed, ir.FullPrecision(ir.BF16),
	{Compute: ir.F16, Params: ir.F16, Grads: ir.F32, Reduce: ir.F16, Master: ir.F32, Moments: ir.F32},
	{Compute: ir.BF16, Params: ir.F32, Grads: ir.BF16, Reduce: ir.F32, Master: ir.F32, Moments: ir.BF16},
	{Compute: ir.F32, Params: ir.BF16, Grads: ir.F32, Reduce: ir.BF16, Master: ir.F32, Moments: ir.F32},
}

// lineOf is the first line of a function that begins so, "" if none does.
func lineOf(f *ir.Func, start string) string {
	for _, n := range f.Nodes {
		for _, m := range append(slices.Clone(n.Body), n) {
			if s := m.String(); strings.HasPrefix(s, start) {
				return s
			}
		}
	}
	return ""
}

// Activations are in 16 bits; statistics, the loss and what becomes a gradient are not.
func TestMixedPrecision(t *testing.T) {
	plan := planOf(gpt2, 2, 1, false)
	plan.Precision, plan.Zero, plan.ZeroGroup = mixed, 1, 2
	plan.Precision.Reduce = ir.BF16
	p := compile(t, buildIn(gpt2, ir.BF16), plan, Options{})
	head, block, up := p.Model.Segments[2], p.Model.Segments[1], p.Stages[0].Update
	for _, c := range []struct {
		f     *ir.Func
		start string
		elem  string
	}{
		{block.Forward, "attn, attn_lse =", ", f32[batch"}, {block.Forward, "attn, attn_lse =", ": bf16[batch"},
		{block.Forward, "o =", ": bf16["}, {head.Forward, "logits =", ": bf16["},
		{head.Forward, "loss =", ": f32[] sum@dp"}, {head.Forward, "ce, d.logits = cross_entropy", ": f32["},
		{head.Forward, "ce, d.logits = cross_entropy", ", bf16["}, {head.Backward, "d.logits_3 = matmul", ": f32["},
		{block.Backward, "d.ln1_3 = layer_norm_dgain", ": f32["}, {block.Backward, "d.h = add", ": bf16["},
		{up, "g0.cast = cast g0", ": bf16[flat(b0)"}, {up, "g0.cast.rs.back = cast", ": f32[flat(b0)"},
		{up, "p0.ag =", ": bf16["},
	} {
		if line := lineOf(c.f, c.start); !strings.Contains(line, c.elem) {
			t.Errorf("%s: %q, want %s of %s in\n%v", c.f.Name, line, c.elem, c.start, c.f)
		}
	}
	st := &p.Stages[0]
	if m, v := st.Region(ir.RegionMaster).Size, st.Region(ir.RegionMoment1).Size; m != v || m == 0 {
		t.Errorf("the master copy takes %d bytes, a moment %d", m, v)
	}
	if w, g := st.Region(ir.RegionParams).Size, st.Region(ir.RegionGrads).Size; 2*w != g {
		t.Errorf("parameters take %d bytes, gradients %d", w, g)
	}
}

// What changes the type of a bucket's gradients names the bucket: after a micro-batch each is resolved by itself.
func TestCastsNameTheirBucket(t *testing.T) {
	for zero := range 4 {
		plan := planOf(gpt2, 2, 1, false)
		plan.Precision, plan.Zero, plan.ZeroGroup = mixed, zero, min(2, zero+1)
		plan.Precision.Reduce = ir.BF16
		p := compile(t, buildIn(gpt2, ir.BF16), plan, Options{})
		st := &p.Stages[0]
		f, want := st.Update, 2
		if zero >= 2 {
			f = st.ScatterGrads
		}
		casts := make([]int, len(st.Buckets))
		for _, n := range f.Nodes {
			if n.Op == ir.OpCast {
				casts[n.Attr.Bucket]++
			}
		}
		for i, got := range casts {
			if got != want || zero >= 2 && len(casts) < 3 {
				t.Errorf("zero %d: bucket %d of %d has %d casts, want %d", zero, i, len(casts), got, want)
			}
		}
	}
}

// Where the plan keeps parameters in another type than it computes in, GEMMs read a cast, tables are read as they
// are.
func TestCastParameters(t *testing.T) {
	plan := planOf(gpt2, 1, 1, false)
	plan.Precision = mixed
	plan.Precision.Params = ir.F32
	p := compile(t, buildIn(gpt2, ir.BF16), plan, Options{})
	for _, f := range p.Model.Segments[1].Funcs() {
		if got := lineOf(f, "mlp.up.cast = cast mlp.up :"); !strings.Contains(got, ": bf16[") {
			t.Errorf("%s: %q", f.Name, got)
		}
	}
	if got := lineOf(p.Model.Segments[0].Forward, "e = embed wte, tokens :"); !strings.Contains(got, ": bf16[") {
		t.Errorf("%q", got)
	}
	if p.Stages[0].Region(ir.RegionMaster).Size != 0 {
		t.Error("there is a master copy beside parameters of its type")
	}
}
