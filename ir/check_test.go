package ir

import (
	"strings"
	"testing"
)

// wrong are programs that break one invariant each: the line that breaks it, in the place of one of a sound program.
var wrong = []struct {
	name, old, now string
	want           string // what Check says
}{
	{"used before it is defined", "  n = rms_norm x, gain {eps=1e-05} : f32[batch=4@dp,hidden=8] !norm\n", "",
		`func s.forward: values are defined once, before they are used: matmul uses n before it is defined`},
	{"rule", "u = matmul n, w : f32[batch=4@dp,ffn=6@tp]", "u = matmul n, w : f32[batch=4@dp,ffn=6@tp,seq=2]",
		`func s.forward: operands and results match the op's rule: u = matmul n, w : f32[batch=4@dp,ffn=6@tp,seq=2] ` +
			`!mlp: matmul: dim seq occurs in operands none and results 0, which its rule b* m* k*, b* k* n* -> b* m* ` +
			`n* does not allow`},
	{"sizes", "u = matmul n, w : f32[batch=4@dp,ffn=6@tp]", "u = matmul n, w : f32[batch=4@dp,ffn=12@tp]",
		`func s.forward: the logical sizes of a dim agree: u = matmul n, w : f32[batch=4@dp,ffn=12@tp] !mlp: dim ffn ` +
			`is 6 and 12`},
	{"renamed size", "r = rename g {dim=ffn to=head} : f32[batch=4@dp,head=6@tp]",
		"r = rename g {dim=ffn to=head} : f32[batch=4@dp,head=3@tp]",
		`func s.forward: the logical sizes of a dim agree: r = rename g {dim=ffn to=head} : ` +
			`f32[batch=4@dp,head=3@tp] ` +
			`!mlp: dim ffn is 6, but it is renamed to one of 3`},
	{"attribute left out", "g = gelu u :", "g = softcap u :",
		`func s.forward: attributes have valid values: g = softcap u : f32[batch=4@dp,ffn=6@tp] !mlp: softcap is 0; ` +
			`it must be positive`},
	{"narrow statistic", "  n = rms_norm x", "  l = logsumexp x : bf16[batch=4@dp] !norm\n  n = rms_norm x",
		`func s.forward: indices are integers, and statistics are wide: l = logsumexp x : bf16[batch=4@dp] !norm: l ` +
			`has type bf16: statistics must be at least f32`},
	{"index", "  n = rms_norm x", "  l = pick x, z : f32[batch=4@dp] !norm\n  n = rms_norm x",
		`func s.forward: indices are integers, and statistics are wide: l = pick x, z : f32[batch=4@dp] !norm: ` +
			`operand z has type f32`},
	{"narrow maximum", "p = matmul r, v : f32[batch=4@dp,hidden=8] sum@tp",
		"p = matmul r, v : bf16[batch=4@dp,hidden=8] max@tp",
		`func s.forward: indices are integers, and statistics are wide: q = all_reduce p {axes=tp monoid=sum} : ` +
			`f32[batch=4@dp,hidden=8] !norm: p, partial by max, has type bf16: statistics must be at least f32`},
	{"cast to the same", "g = gelu u", "g = cast u",
		`func s.forward: indices are integers, and statistics are wide: g = cast u : f32[batch=4@dp,ffn=6@tp] ` +
			`!mlp: cast ` +
			`turns f32 into f32`},
	{"view of another type", "r = rename g {dim=ffn to=head} : f32[", "r = rename g {dim=ffn to=head} : bf16[",
		`func s.forward: indices are integers, and statistics are wide: r = rename g {dim=ffn to=head} : ` +
			`bf16[batch=4@dp,head=6@tp] !mlp: rename turns f32 into bf16`},
	{"side read", "  y = add x, q :", "  s2 = broadcast x : f32[batch=4@dp,side=2,hidden=8] !norm\n" +
		"  s = side s2 {offset=1} : f32[batch=4@dp,hidden=8] !norm\n" +
		"  t = rms_norm s, gain {eps=1e-05} : f32[batch=4@dp,hidden=8] !norm\n  y = add t, q :",
		`func s.forward: only attention and element-wise ops read a side of a value: t = rms_norm s, gain {eps=1e-05} : ` +
			`f32[batch=4@dp,hidden=8] !norm: s is a side of a value, which only attention and element-wise ops can read`},
	{"side computed by rows", "  y = add x, q :",
		"  s = rms_norm x, gain {eps=1e-05} : f32[batch=4@dp,hidden=8] !norm\n" +
			"  s2 = sides s, x : f32[batch=4@dp,side=2,hidden=8] !norm\n  y = add x, q :",
		`func s.forward: only attention and element-wise ops read a side of a value: s2 = sides s, x : ` +
			`f32[batch=4@dp,side=2,hidden=8] !norm: s must be computed by an element-wise op, and nothing else may read it`},
	{"no such side", "  y = add x, q :", "  s2 = broadcast x : f32[batch=4@dp,side=2,hidden=8] !norm\n" +
		"  s = side s2 {offset=2} : f32[batch=4@dp,hidden=8] !norm\n  y = add x, q :",
		`func s.forward: attributes have valid values: s = side s2 {offset=2} : f32[batch=4@dp,hidden=8] !norm: s2 has ` +
			`no side 2`},
	{"type of a weight", "param w : f32[", "param w : bf16[",
		`func s.forward: element types are the plan's: parameter w has type bf16, but the plan has f32`},
	{"type of a factor", "  n = rms_norm x, gain {eps=1e-05} : f32[", "  n = rms_norm x, gain {eps=1e-05} : bf16[",
		`func s.forward: element types are the plan's: u = matmul n, w : f32[batch=4@dp,ffn=6@tp] !mlp: operand n ` +
			`has type bf16, but the plan computes in f32`},
	{"gradient missing", "  accumulate d.w {into=w} !mlp\n", "",
		`func s.forward: every parameter has one gradient: w has 0 gradients, not one`},
	{"gradient twice", "  accumulate d.w {into=w} !mlp\n",
		"  accumulate d.w {into=w} !mlp\n  accumulate d.w {into=w} !mlp\n",
		`func s.forward: every parameter has one gradient: w has 2 gradients, not one`},
	{"axis", "g = gelu u : f32[batch=4@dp,ffn=6@tp]", "g = gelu u : f32[batch=4@dp,ffn=6@ep]",
		`func s.forward: axes belong to the mesh: g: the mesh tp=2 dp=2 has no axis ep`},
	{"split differs", "g = gelu u : f32[batch=4@dp,ffn=6@tp]", "g = gelu u : f32[batch=4@dp,ffn=6]",
		`func s.forward: operands, results and partials agree on the axes: g = gelu u : f32[batch=4@dp,ffn=6] !mlp: ` +
			`dim ffn is split over [tp] and []`},
	{"whole dim split", "  input x : f32[batch=4@dp,hidden=8]", "  input x : f32[batch=4@dp,hidden=8@tp]",
		`func s.forward: operands, results and partials agree on the axes: n = rms_norm x, gain {eps=1e-05} : ` +
			`f32[batch=4@dp,hidden=8] !norm: dim hidden is split over [tp] and []`},
	{"partial forgotten", "p = matmul r, v : f32[batch=4@dp,hidden=8] sum@tp",
		"p = matmul r, v : f32[batch=4@dp,hidden=8]",
		`func s.forward: operands, results and partials agree on the axes: p = matmul r, v : ` +
			`f32[batch=4@dp,hidden=8] !mlp: p is partial over [], but its rule requires [tp]`},
	{"monoid", "p = matmul r, v : f32[batch=4@dp,hidden=8] sum@tp", "p = matmul r, v : f32[batch=4@dp,hidden=8] max@tp",
		`func s.forward: operands, results and partials agree on the axes: p = matmul r, v : ` +
			`f32[batch=4@dp,hidden=8] max@tp !mlp: p combines by max, but the op by sum`},
	{"partial passed", "y = add x, q :", "y = add x, p :",
		`func s.forward: operands, results and partials agree on the axes: y = add x, p : f32[batch=4@dp,hidden=8] ` +
			`!norm: add is not linear in its partial operands`},
	{"collective", "q = all_reduce p {axes=tp monoid=sum} : f32[batch=4@dp,hidden=8]",
		"q = reduce_scatter p {dim=hidden axes=tp monoid=sum} : f32[batch=4@dp,hidden=8]",
		`func s.forward: operands, results and partials agree on the axes: q = reduce_scatter p {dim=hidden axes=tp ` +
			`monoid=sum} : f32[batch=4@dp,hidden=8] !norm: reduce_scatter turns f32[batch=4@dp,hidden=8] sum@tp into ` +
			`f32[batch=4@dp,hidden=8@tp], not f32[batch=4@dp,hidden=8]`},
	{"size of a weight", "f32[hidden=8,ffn=6@tp]", "f32[hidden=8,ffn=7@tp]",
		`func s.forward: the logical sizes of a dim agree:`},
	{"axis twice", "  input d.y : f32[batch=4@dp,hidden=8]", "  input d.y : f32[batch=4@dp,hidden=8@dp]",
		`func s.backward: axes divide dims: d.y: f32[batch=4@dp,hidden=8@dp] uses an axis twice`},
	{"five over two", "  input z : f32[batch=4@dp]", "  input z : f32[seq=5@dp]",
		`func s.forward: axes divide dims: z: seq=5 is not divisible by 2`},
	{"parts away", "  input z : f32[batch=4@dp]", "  input z : f32[seq=4@zigzag:dp+1]",
		`func s.forward: a ring visits every key once: z: the parts of seq are not at their home ranks`},
}

const sound = `program m stage 0
plan PLAN
mesh tp=2 dp=2
recipe optimizer=sgd
region mlp batch@dp ffn@tp
region norm batch@dp
segment s x1
func s.forward
  input x : f32[batch=4@dp,hidden=8]
  input z : f32[batch=4@dp]
  param gain : f32[hidden=8] init=ones
  param w : f32[hidden=8,ffn=6@tp] init=normal(0.02) decay
  param v : f32[head=6@tp,hidden=8] init=zeros
  n = rms_norm x, gain {eps=1e-05} : f32[batch=4@dp,hidden=8] !norm
  u = matmul n, w : f32[batch=4@dp,ffn=6@tp] !mlp
  g = gelu u : f32[batch=4@dp,ffn=6@tp] !mlp
  r = rename g {dim=ffn to=head} : f32[batch=4@dp,head=6@tp] !mlp
  p = matmul r, v : f32[batch=4@dp,hidden=8] sum@tp !mlp
  q = all_reduce p {axes=tp monoid=sum} : f32[batch=4@dp,hidden=8] !norm
  y = add x, q : f32[batch=4@dp,hidden=8] !norm
  return y
func s.backward
  input d.y : f32[batch=4@dp,hidden=8]
  input d.w : f32[hidden=8,ffn=6@tp]
  input d.v : f32[head=6@tp,hidden=8]
  input d.gain : f32[hidden=8]
  accumulate d.w {into=w} !mlp
  accumulate d.v {into=v} !mlp
  accumulate d.gain {into=gain} !norm
  return d.y
`

func TestCheck(t *testing.T) {
	text := strings.Replace(sound, "PLAN", SerialPlan(1, 4, FullPrecision(F32)).Text(), 1)
	done := []string{"grad", "precision", "partition"}
	if p, err := ParseProgram(text); err != nil {
		t.Fatal(err)
	} else if err := p.Check(done); err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		spoilt := strings.Replace(text, w.old, w.now, 1)
		if spoilt == text {
			t.Errorf("%s: nothing to spoil", w.name)
			continue
		}
		p, err := ParseProgram(spoilt)
		if err == nil {
			err = p.Check(done)
		} else if strings.Contains(err.Error(), "line ") { // the reader found it: take it out of the function
			err = removed(t, text, w.old)
		}
		if err == nil || !strings.HasPrefix(err.Error(), w.want) {
			t.Errorf("%s:\n got %v\nwant %s", w.name, err, w.want)
		}
	}
}

// removed checks the program without the node of a line, since text cannot say what nothing defines.
func removed(t *testing.T, text, line string) error {
	t.Helper()
	p, err := ParseProgram(text)
	if err != nil {
		t.Fatal(err)
	}
	f := p.Model.Segments[0].Forward
	for i, n := range f.Nodes {
		if n.String() == strings.TrimSpace(line) {
			f.Nodes = append(f.Nodes[:i:i], f.Nodes[i+1:]...)
			break
		}
	}
	return p.Check(nil)
}

// What text cannot say, a pass could still build.
func TestCheckGraphs(t *testing.T) {
	fresh := func() (*Program, *Func) {
		p, err := ParseProgram(strings.Replace(sound, "PLAN", SerialPlan(1, 4, FullPrecision(F32)).Text(), 1))
		if err != nil {
			t.Fatal(err)
		}
		return p, p.Model.Segments[0].Forward
	}
	for name, c := range map[string]struct {
		spoil func(*Program, *Func)
		done  []string
		want  string
	}{
		"twice": {func(_ *Program, f *Func) {
			f.Nodes[1].Outs[0].Name = "n"
		}, nil, "values are defined once, before they are used: n is defined twice"},
		"input twice": {func(_ *Program, f *Func) {
			f.Inputs[1] = f.Inputs[0]
		}, nil, "values are defined once, before they are used: x is defined twice"},
		"returned": {func(_ *Program, f *Func) { f.Outputs = []*Value{{Name: "q2"}} }, nil,
			"values are defined once, before they are used: returned value q2 is not defined"},
		"no backward": {func(p *Program, _ *Func) { p.Model.Segments[0].Backward = nil }, []string{"grad"},
			"every parameter has one gradient: no backward function"},
		"no place": {func(*Program, *Func) {
		}, []string{"memory"}, `every value has a location inside its region: n ends at byte 64 of "", which ` +
			`has 0 bytes`},
		"fused": {func(_ *Program, f *Func) {
			f.Nodes[2] = &Node{Op: OpFused, Args: f.Nodes[2].Args, Outs: f.Nodes[2].Outs}
		}, nil,
			"values are defined once, before they are used: no op of the body defines g"},
	} {
		p, f := fresh()
		c.spoil(p, f)
		if err := p.Check(c.done); err == nil || err.Error() != "func s.forward: "+c.want {
			t.Errorf("%s:\n got %v\nwant func s.forward: %s", name, err, c.want)
		}
	}
}

// Every invariant is broken by some case above.
func TestInvariantsCovered(t *testing.T) {
	for _, inv := range invariants {
		found := false
		for _, w := range wrong {
			found = found || strings.Contains(w.want, ": "+inv.name)
		}
		if !found && inv.since != "memory" { // TestCheckGraphs has that
			t.Errorf("no case breaks %q", inv.name)
		}
	}
}
