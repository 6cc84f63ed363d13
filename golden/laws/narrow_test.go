package laws_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// Law 1 in 16 bits: a program is compared with one rank in the same precision. The bound is measured: one rank runs
// again with the sums of its GEMMs split into 2 to 9 parts, which are rounded and added in reverse order, as ranks do
// that send their parts to each other. The largest difference to the plain one-rank run is the yardstick of the
// model, for losses and norms, and for gradients. Each run is one sample of the rounding noise: three samples were
// seen within a third of its deviation in norms (1 model in 100), eight hardly ever are.

// lawNarrowFactor times the yardstick is the bound: a plan also rounds in other places, where it adds partial sums of
// several GEMMs, and where norms and residuals are split.
const lawNarrowFactor = 4

// lawSplits are the numbers of parts of the yardsticks.
var lawSplits = []int{2, 3, 4, 5, 6, 7, 8, 9}

// lawNarrow are precisions that draws choose from, in addition to any that a job may set; the first two are the
// presets.
var lawNarrow = []ir.Precision{
	{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32, Moments: ir.F32},
	{Compute: ir.F16, Params: ir.F16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32, Moments: ir.F32},
	{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.BF16, Master: ir.F32, Moments: ir.BF16},
	{Compute: ir.BF16, Params: ir.F32, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32, Moments: ir.F32},
}

// drawPrecision draws a precision that the case's model allows, and names its group after it. Some draws of f32, and
// a third of those of 16 bits, set fields one by one as a job may.
func drawPrecision(r *rand.Rand, c *lawCase) ir.Precision {
	group := c.group
	for {
		p := drawAnyPrecision(r, c)
		// its choices are counted in the type of gradients
		if !c.model.RouteBias || !p.Grads.Narrow() && !p.Reduce.Narrow() {
			return p
		}
		c.group = group
	}
}

func drawAnyPrecision(r *rand.Rand, c *lawCase) ir.Precision {
	switch {
	case c.elem == ir.F64 || c.elem == ir.F32 && r.IntN(8) > 0:
		return ir.FullPrecision(c.elem)
	case c.elem == ir.F32 || r.IntN(3) == 0:
		p := oddPrecision(r, c.elem)
		c.group += fmt.Sprintf("-%v%v%v%v%v", p.Params, p.Grads, p.Reduce, p.Master, p.Moments)
		return p
	}
	i := r.IntN(len(lawNarrow))
	for lawNarrow[i].Compute != c.elem {
		i = r.IntN(len(lawNarrow))
	}
	c.group += fmt.Sprintf("-p%d", i)
	return lawNarrow[i]
}

// oddPrecision draws the fields of a precision block, as a job may set them.
func oddPrecision(r *rand.Rand, compute ir.Elem) ir.Precision {
	one := func() string { return pickOf(r, "f32", "f32", "bf16", "fp16") }
	for {
		p := spec.Precision{Compute: elemNames[compute], Params: one(), Grads: one(), Reduce: one(),
			Master: pickOf(r, "none", "f32", one()), Moments: one()}
		if q := p.IR(); p.Refused() == "" && q != ir.FullPrecision(compute) {
			return q
		}
	}
}

var elemNames = map[ir.Elem]string{ir.F32: "f32", ir.BF16: "bf16", ir.F16: "fp16"}

// rounds reports whether a case stores anything in 16 bits, so that its yardsticks decide.
func (c *lawCase) rounds() bool {
	p := c.plan.Precision
	return slices.ContainsFunc([]ir.Elem{p.Compute, p.Params, p.Grads, p.Reduce, p.Master, p.Moments}, ir.Elem.Narrow)
}

// yardsticks returns the one-rank programs that measure a reference's rounding noise. Accumulators in 16 bits round
// what each micro-batch adds, and reductions in 16 bits what each rank adds. In these cases runs with more
// micro-batches are yardsticks too.
func yardsticks(ref lawCase) (out []lawCase) {
	if !ref.rounds() {
		return nil
	}
	for _, n := range lawSplits {
		y := ref
		y.id, y.as, y.yard, y.split = fmt.Sprintf("%ssplit%d", ref.id, n), ref.id, true, n
		out = append(out, y)
	}
	for _, m := range []int{4, 8} {
		y := ref
		y.id, y.yard, y.plan.MicroBatch, y.plan.MicroBatches = fmt.Sprintf("%smicro%d", ref.id, m), true, lawBatch/m, m
		if p := &y.plan.Precision; p.Reduce.Narrow() && !p.Grads.Narrow() {
			p.Grads = p.Reduce
		}
		if y.plan.Precision.Grads.Narrow() {
			out = append(out, y)
		}
	}
	return out
}

// distance is the difference of a program to its reference: in scalars, and in gradients.
type distance struct{ scalars, grads float64 }

func distanceOf(v lawVerdict) distance { return distance{max(v.Losses, v.Norms, v.Valid), v.Grad} }

// narrowBounds returns the groups' bounds from their yardsticks.
func narrowBounds(cases []lawCase, verdicts []lawVerdict) map[string]distance {
	out := map[string]distance{}
	for i, c := range cases {
		if c.yard {
			d, now := distanceOf(verdicts[i]), out[c.group]
			out[c.group] = distance{max(now.scalars, lawNarrowFactor*d.scalars),
				max(now.grads, lawNarrowFactor*d.grads)}
		}
	}
	return out
}

// narrowFaults compares the 16-bit programs with their groups' bounds. A program with an inserted fault must exceed
// them.
func narrowFaults(cases []lawCase, verdicts []lawVerdict) []string {
	out := make([]string, len(cases))
	bounds := narrowBounds(cases, verdicts)
	for i := range cases {
		c, b, d := &cases[i], bounds[cases[i].group], distanceOf(verdicts[i])
		if inside := d.scalars <= b.scalars && d.grads <= b.grads; c.yardsticked(d) && inside == (c.spoil != nil) {
			out[i] = fmt.Sprintf("scalars %.3g, gradients %.3g off, of bounds %.3g and %.3g; worst %s; a fault is "+
				"in it: %v; ",
				d.scalars, d.grads, b.scalars, b.grads, verdicts[i].Worst, c.spoil != nil)
		}
	}
	return out
}

// yardsticked reports whether yardsticks decide on a case with this distance.
func (c *lawCase) yardsticked(d distance) bool {
	return c.rounds() && !c.yard && (c.plan.Ranks() > 1 || d != distance{})
}

// logNarrow logs the fraction of the bounds that was used.
func logNarrow(t *testing.T, cases []lawCase, verdicts []lawVerdict) {
	t.Helper()
	bounds := narrowBounds(cases, verdicts)
	largest, n := distance{}, 0
	for i := range cases {
		if b, d := bounds[cases[i].group], distanceOf(verdicts[i]); cases[i].yardsticked(d) && cases[i].spoil == nil {
			n++
			largest.scalars = max(largest.scalars, d.scalars/b.scalars)
			largest.grads = max(largest.grads, d.grads/b.grads)
		}
	}
	if n > 0 {
		t.Logf("%d programs of 16 bits: at most %.2g of the bound in scalars, %.2g in gradients", n,
			largest.scalars, largest.grads)
	}
}

// replaced returns a fault that replaces the first match of pattern.
func replaced(t *testing.T, pattern, text string) func([]byte) []byte {
	re := regexp.MustCompile(pattern)
	return func(src []byte) []byte {
		at := re.FindSubmatchIndex(src)
		if at == nil {
			t.Fatalf("nothing is like %s in\n%s", pattern, src)
		}
		out := append([]byte{}, src[:at[0]]...)
		return append(re.Expand(out, []byte(text), src, at), src[at[1]:]...)
	}
}

// zeroBubbles are plans that compute gradients of parameters apart from those of activations.
var zeroBubbles = []func(*ir.Plan){staged(2, "zb-h1"), staged(4, "zb-h1"), staged(2, "zb-v"), func(p *ir.Plan) {
	staged(2, "zb-h1")(p)
	zeroed(2)(p)
	p.ZeroGroup = 2
}}

// Zero-bubble schedules in 16 bits, which the draws reach only at random.
func TestLawNarrowZeroBubble(t *testing.T) {
	var cases []lawCase
	for _, prec := range lawNarrow[:2] {
		broad, _ := lawVariants(prec.Compute)
		ref := broad[0]
		ref.model.Layers = 4
		ref.id, ref.plan = "ref"+prec.Compute.String(), ir.SerialPlan(4, lawBatch, prec)
		cases = append(append(cases, ref), yardsticks(ref)...)
		for i, change := range zeroBubbles {
			c := ref
			c.id = fmt.Sprintf("plan%v%d", prec.Compute, i)
			change(&c.plan)
			cases = append(cases, c)
		}
	}
	runLawCases(t, "bubbles", cases)
}

// Faults are detected although rounding is large: a missing bias gradient, an embedding that looks up another rank's
// rows, a partial sum that is not reduced.
func TestLawNarrowSeesFaults(t *testing.T) {
	harness.OnlyLong(t)
	faults := []func([]byte) []byte{
		replaced(t, `kern\.SumRows\((\w+), (\w+),[^\n]*, true\)`, "_, _ = $1, $2"),
		replaced(t, `rt\.LocalRange\(r, groupTp,`, "rt.LocalRange(r, -1,"),
		replaced(t, `rt\.AllReduce\(r, groupTp, [^\n]*`, ""),
		nil, // the last program runs twice
	}
	var cases []lawCase
	for _, prec := range lawNarrow[:2] {
		broad, _ := lawVariants(prec.Compute)
		ref := broad[0]
		ref.id, ref.plan = "ref"+prec.Compute.String(), ir.SerialPlan(ref.model.Layers, lawBatch, prec)
		cases = append(append(cases, ref), yardsticks(ref)...)
		for i, spoil := range faults {
			c := ref
			c.id, c.spoil = fmt.Sprintf("plan%v%d", prec.Compute, i), spoil
			c.plan.TP, c.plan.DP, c.plan.MicroBatch, c.plan.Zero, c.plan.ZeroGroup = 2, 2, lawBatch/2, 1, 2
			cases = append(cases, c)
		}
	}
	runLawCases(t, "faults", cases)
}
