package passes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
)

// The pipeline's order respects what each pass wants before it.
func TestAfter(t *testing.T) {
	var seen []string
	for _, p := range All {
		if p.Name == "" || p.Doc == "" || p.Run == nil || slices.Contains(seen, p.Name) {
			t.Errorf("pass %q: doc %q; its name may be another's", p.Name, p.Doc)
		}
		for _, a := range p.After {
			if !slices.Contains(seen, a) {
				t.Errorf("%s runs before %s, which it wants before it", p.Name, a)
			}
		}
		seen = append(seen, p.Name)
	}
	if !slices.Equal(seen, Names()) {
		t.Errorf("Names is %v, want %v", Names(), seen)
	}
}

// Gradients are derived exactly where the op table says that they pass. Accumulate begins them.
func TestGradientsTable(t *testing.T) {
	for _, o := range ir.Ops() {
		want := o.Differentiable() || o == ir.OpAccumulate
		if got := gradients[o] != nil; got != want {
			t.Errorf("%s has a gradient function: %v, the op table says %v", o, got, want)
		}
	}
	for o := range accumulates {
		if o.Element() || o.View() || o.Comm() {
			t.Errorf("%s is said to add to its result", o)
		}
	}
}

var (
	gpt2 = spec.Config{Family: "gpt2", Vocab: 61, Hidden: 16, Layers: 2, Heads: 8, KVHeads: 8, HeadDim: 2, FFN: 32,
		MaxPositions: 10,
		Activation:   "gelu_new", NormEps: 1e-5, InitStd: 0.2, Tied: true, AttentionBias: true, MLPBias: true,
		DropResid: 0.1}
	llama = spec.Config{Family: "llama", Vocab: 59, Hidden: 16, Layers: 3, Heads: 8, KVHeads: 2, HeadDim: 4, FFN: 24,
		MaxPositions: 32,
		Activation:   "silu", NormEps: 1e-5, InitStd: 0.2, RopeTheta: 10000}
)

func build(c spec.Config) *ir.Model { return buildIn(c, ir.F64) }

func buildIn(c spec.Config, elem ir.Elem) *ir.Model {
	return zoo.Build(c.Family, c, zoo.Options{SeqLen: 8, Batch: 1, Elem: elem})
}

func planOf(c spec.Config, dp, tp int, sp bool) ir.Plan {
	p := ir.SerialPlan(c.Layers, 2, ir.FullPrecision(ir.F64))
	p.DP, p.TP, p.SP = dp, tp, sp
	return p
}

func compile(t *testing.T, m *ir.Model, plan ir.Plan, o Options) *ir.Program {
	t.Helper()
	o.Check = true
	p, err := Compile(m, plan, ir.Recipe{Optimizer: "adamw"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// count lists a function's collectives as "op dim" with their numbers, those on the whole stream alone.
func count(f *ir.Func) string {
	n := map[ir.Op]int{}
	for _, x := range f.Nodes {
		if x.Op.Comm() {
			n[x.Op]++
		}
	}
	var parts []string
	for _, o := range ir.Ops() {
		if n[o] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", o, n[o]))
		}
	}
	return strings.Join(parts, ", ")
}

// Megatron's pattern falls out of the rule for whole blocks, of which each has two halves.
func TestMegatronPattern(t *testing.T) {
	for _, c := range []spec.Config{gpt2, llama} {
		for _, x := range []struct {
			tp       int
			sp       bool
			fwd, bwd string
		}{
			{1, false, "", ""},
			{2, false, "all_reduce 2", "all_reduce 2"},
			{8, false, "all_reduce 2", "all_reduce 2"}, // llama has 2 K/V heads: tp is kv × rep
			{2, true, "reduce_scatter 2, all_gather 2", "reduce_scatter 2, all_gather 4"},
			{8, true, "reduce_scatter 2, all_gather 2", "reduce_scatter 2, all_gather 4"},
		} {
			p := compile(t, build(c), planOf(c, 2, x.tp, x.sp), Options{Until: "fuse"})
			block := p.Model.Segments[1]
			if fwd, bwd := count(block.Forward), count(block.Backward); fwd != x.fwd || bwd != x.bwd {
				t.Errorf("%s tp %d sp %v: forward %s, backward %s; want %s and %s\n%v", c.Family, x.tp, x.sp, fwd, bwd,
					x.fwd, x.bwd, block.Backward)
			}
		}
	}
}

// A plan whose axes do not divide the model's dims is refused with the dim and the ranks.
func TestNotDivisible(t *testing.T) {
	seven := gpt2
	seven.FFN = 30
	odd := llama
	odd.Heads, odd.KVHeads = 6, 3
	for _, x := range []struct {
		c    spec.Config
		plan ir.Plan
		want string
	}{
		{seven, planOf(seven, 1, 4, false), "ffn=30 is not divisible by 4 ranks ([tp])"},
		{odd, planOf(odd, 1, 4, false), "tp 4 must be a multiple of the 3 K/V heads"},
		{odd, planOf(odd, 1, 2, false), "head=3 is not divisible by 2 ranks ([tp])"},
	} {
		_, err := Compile(build(x.c), x.plan, ir.Recipe{Optimizer: "adamw"}, Options{})
		if err == nil || !strings.HasSuffix(err.Error(), x.want) {
			t.Errorf("%v: %v, want …%s", x.plan, err, x.want)
		}
	}
}

// The driver stops where it is reported, dumps each pass once and says when nothing changed.
func TestDriver(t *testing.T) {
	var dumped, timed []string
	o := Options{Check: true, Until: "fuse",
		Dump: func(pass, text string) {
			if !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n") {
				t.Errorf("the dump after %s does not end in one newline", pass)
			}
			dumped = append(dumped, pass)
		},
		Time: func(pass string, _ time.Duration) { timed = append(timed, pass) }}
	p := compile(t, build(gpt2), planOf(gpt2, 1, 1, false), o)
	want := Names()[:slices.Index(Names(), "fuse")+1]
	if !slices.Equal(dumped, want) || !slices.Equal(timed, want) || p.Stages[0].Schedule != nil {
		t.Errorf("dumped %v, timed %v, want %v", dumped, timed, want)
	}
	var texts []string
	to := func(_, text string) { texts = append(texts, text) }
	before := dump(to, "a", "", "program\n")
	dump(to, "b", before, "program\n")
	if want := []string{"program\n", "(unchanged)\n"}; !slices.Equal(texts, want) {
		t.Errorf("dumps %q, want %q", texts, want)
	}
}

// A pass that breaks the program is blamed by name.
func TestBlame(t *testing.T) {
	saved := All
	defer func() { All = saved }()
	All = []Pass{{Name: "spoil", Run: func(p *ir.Program) error {
		f := p.Model.Segments[0].Forward
		f.Nodes = f.Nodes[1:]
		return nil
	}}}
	defer func() {
		if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "passes: spoil broke the program of plan dp 1") ||
			!strings.Contains(got, "func embed.forward: values are defined once, before they are used: add uses e "+
				"before it "+
				"is defined") {
			t.Errorf("the panic says %.300s", got)
		}
	}()
	compile(t, build(gpt2), planOf(gpt2, 1, 1, false), Options{})
}
