package passes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"pgregory.net/rapid"
)

// A term is a value as the ops, attributes and inputs that it is made of, in one number: values of one term have the
// same bits, whatever the ops do and in whatever order, and in whichever function, they are done.
type term int

// terms evaluates functions to terms.
type terms struct{ known map[string]term }

func (ts *terms) term(key string) term {
	n, ok := ts.known[key]
	if !ok {
		n = term(len(ts.known) + 1)
		ts.known[key] = n
	}
	return n
}

// function evaluates one. What it takes is found by name in before, else it is the function's own, a parameter or an
// incoming gradient; what it returns has all that may be asked for by name afterwards, which is not what only a group
// knows. Effects are reported in their order, one list for each number or parameter that they add to.
func (ts *terms) function(f *ir.Func, before map[string]term, effects map[string][]term) (map[string]term, error) {
	now := map[*ir.Value]term{}
	made := map[string]term{}
	for _, v := range f.Inputs {
		if t, ok := before[v.Name]; ok && v.Kind == ir.Input {
			now[v] = t
		} else {
			now[v] = ts.term("input " + v.Name)
		}
	}
	for _, n := range f.Nodes {
		if err := ts.node(n, now, effects); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		for _, o := range n.Outs {
			made[o.Name] = now[o]
		}
	}
	for _, o := range f.Outputs {
		if now[o] == 0 {
			return nil, fmt.Errorf("%s returns %s, which nothing makes", f.Name, o.Name)
		}
	}
	return made, nil
}

func (ts *terms) node(n *ir.Node, now map[*ir.Value]term, effects map[string][]term) error {
	if n.Op == ir.OpFused {
		inside := map[*ir.Value]term{}
		for _, a := range n.Args {
			if now[a] == 0 {
				return fmt.Errorf("a group takes %s before it is made", a.Name)
			}
			inside[a] = now[a]
		}
		for _, m := range n.Body {
			if err := ts.node(m, inside, effects); err != nil {
				return err
			}
		}
		for _, o := range n.Outs {
			now[o] = inside[o]
			if now[o] == 0 {
				return fmt.Errorf("a group says that it makes %s", o.Name)
			}
		}
		return nil
	}
	key := fmt.Sprintf("%s %+v", n.Op, n.Attr)
	for _, a := range n.Args {
		if now[a] == 0 {
			return fmt.Errorf("%s takes %s before it is made", n.Op, a.Name)
		}
		key += fmt.Sprintf(" %d", now[a])
	}
	if len(n.Outs) == 0 {
		effects[n.Attr.Into] = append(effects[n.Attr.Into], ts.term(key))
	}
	for i, o := range n.Outs {
		now[o] = ts.term(fmt.Sprintf("%s: %d %v", key, i, o.Type))
	}
	return nil
}

// segment tells what a segment's functions do: its outputs, the gradient of its input, its effects.
func (ts *terms) segment(s *ir.Segment) (string, error) {
	effects := map[string][]term{}
	forward, err := ts.function(s.Forward, nil, effects)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, o := range s.Forward.Outputs {
		fmt.Fprintf(&out, "%s is %d\n", o.Name, forward[o.Name])
	}
	back, err := ts.function(s.Backward, forward, effects)
	if err != nil {
		return "", err
	}
	for _, o := range s.Backward.Outputs {
		fmt.Fprintf(&out, "%s is %d\n", o.Name, back[o.Name])
	}
	if s.Weights != nil {
		for k, v := range forward {
			if _, ok := back[k]; !ok {
				back[k] = v
			}
		}
		if _, err := ts.function(s.Weights, back, effects); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(&out, "effects %v\n", effects)
	return out.String(), nil
}

// program tells what all segments' functions do, but for those whose loss fuse makes in another way.
func (ts *terms) program(p *ir.Program, joined map[string]bool) (string, error) {
	var out strings.Builder
	for _, s := range p.Model.Variants() {
		if joined[s.Name] {
			continue
		}
		text, err := ts.segment(s)
		if err != nil {
			return "", fmt.Errorf("%s: %w\n%v", s.Name, err, p)
		}
		fmt.Fprintf(&out, "%s\n%s", s.Name, text)
	}
	return out.String(), nil
}

// without runs f with a pipeline that lacks passes.
func without(f func(), names ...string) {
	saved := All
	defer func() { All = saved }()
	All = slices.DeleteFunc(slices.Clone(All), func(p Pass) bool { return slices.Contains(names, p.Name) })
	f()
}

// holds compares a pipeline with one without the passes rematerialize and fuse, and returns both programs.
func holds(t *rapid.T, compile func(until string) *ir.Program) (plain, fused *ir.Program) {
	ts, joined := &terms{known: map[string]term{}}, map[string]bool{}
	fused = compile("fuse")
	for _, s := range fused.Model.Variants() {
		joined[s.Name] = slices.ContainsFunc(s.Forward.Nodes, func(n *ir.Node) bool {
			return n.Op == ir.OpCrossEntropy
		})
	}
	got, err := ts.program(fused, joined)
	if err != nil {
		t.Fatal(err)
	}
	without(func() { plain = compile("split") }, "rematerialize")
	want, err := ts.program(plain, joined)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Fatalf("after fuse:\n%s\nwant\n%s\n%v\n%v", got, want, plain, fused)
	}
	return plain, fused
}

// drawnBlock writes a block of random ops on matrices of tokens × hidden and tokens × ffn, and on numbers by token.
type drawnBlock struct {
	t      *rapid.T
	params []string
	nodes  []string
	byType map[string][]string // values by type
	used   map[string]bool
}

const (
	hiddenType = "f64[batch=2,seq=4,hidden=8] !norm"
	ffnType    = "f64[batch=2,seq=4,ffn=6] !mlp"
	tokenType  = "f64[batch=2,seq=4] !norm"
)

func (b *drawnBlock) pick(label string, xs []string) string {
	return rapid.SampledFrom(xs).Draw(b.t, label)
}

func (b *drawnBlock) param(dims, init string) string {
	name := fmt.Sprintf("w%d", len(b.params))
	b.params = append(b.params, fmt.Sprintf("  param %s : f64[%s] init=%s\n", name, dims, init))
	return name
}

func (b *drawnBlock) add(kind, op string, args ...string) string {
	name := fmt.Sprintf("v%d", len(b.nodes))
	for _, a := range args {
		b.used[a] = true
	}
	b.nodes = append(b.nodes, fmt.Sprintf("  %s = %s : %s\n", name, fmt.Sprintf(op, strings.Join(args, ", ")), kind))
	b.byType[kind] = append(b.byType[kind], name)
	return name
}

// step adds an op.
func (b *drawnBlock) step() {
	kind := rapid.SampledFrom([]string{hiddenType, ffnType, ffnType}).Draw(b.t, "kind")
	have := b.byType[kind]
	if len(have) == 0 {
		b.add(ffnType, "matmul %s", b.pick("of", b.byType[hiddenType]), b.param("hidden=8,ffn=6", "zeros"))
		return
	}
	a := b.pick("a", have)
	switch rapid.SampledFrom([]string{"one", "one", "two", "two", "two", "norm", "matmul", "scalar"}).Draw(b.t, "op") {
	case "one":
		b.add(kind, rapid.SampledFrom([]string{"silu", "gelu", "sigmoid", "relu", "scale"}).Draw(b.t, "one")+" %s", a)
		if last := &b.nodes[len(b.nodes)-1]; strings.Contains(*last, "scale") {
			*last = strings.Replace(*last, " : ", " {scale=2} : ", 1)
		}
	case "two":
		b.add(kind, rapid.SampledFrom([]string{"add", "mul", "mul", "sub"}).Draw(b.t, "two")+" %s", a,
			b.pick("b", have))
	case "norm":
		if kind == hiddenType {
			b.add(kind, "rms_norm %s {eps=1e-05}", a, b.param("hidden=8", "ones"))
		}
	case "matmul":
		if kind == hiddenType {
			b.add(ffnType, "matmul %s", a, b.param("hidden=8,ffn=6", "zeros"))
		} else {
			b.add(hiddenType, "matmul %s", a, b.param("ffn=6,hidden=8", "zeros"))
		}
	case "scalar":
		if s := b.byType[tokenType]; len(s) > 0 && rapid.Bool().Draw(b.t, "use") {
			b.add(kind, "mul %s", a, b.pick("s", s))
		} else if kind == hiddenType {
			b.add(tokenType, "reduce_sum %s", a)
		}
	}
}

// drawBlock draws a model of one block, all of whose values its output depends on.
func drawBlock(t *rapid.T) *ir.Model {
	b := &drawnBlock{t: t, byType: map[string][]string{hiddenType: {"x"}}, used: map[string]bool{}}
	for range rapid.IntRange(2, 24).Draw(t, "ops") {
		b.step()
	}
	y := "x"
	for _, kind := range []string{ffnType, tokenType, hiddenType} {
		for _, v := range slices.Clone(b.byType[kind]) {
			switch {
			case b.used[v] || v == "x":
			case kind == hiddenType:
				y = b.add(kind, "add %s", y, v)
			case kind == tokenType:
				b.add(hiddenType, "mul %s", "x", v)
			default:
				b.add(hiddenType, "matmul %s", v, b.param("ffn=6,hidden=8", "zeros"))
			}
		}
	}
	if y == "x" {
		y = b.add(hiddenType, "add %s", y, y)
	}
	text := "model drawn\nsegment block x1\nfunc block.forward\n  input x : f64[batch=2,seq=4,hidden=8]\n" +
		strings.Join(b.params, "") + strings.Join(b.nodes, "") + "  return " + y + "\n"
	m, err := ir.ParseModel(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return m
}

// runTo runs the passes that know no stages, up to one of them, checking after each.
func runTo(t *rapid.T, p *ir.Program, until string) *ir.Program {
	var done []string
	for _, pass := range All {
		if pass.Name == "pipeline" || pass.Name == "zero" {
			continue
		}
		if err := pass.Run(p); err != nil {
			t.Fatalf("%s: %v\n%v", pass.Name, err, p)
		}
		done = append(done, pass.Name)
		if err := p.Check(done); err != nil {
			t.Fatalf("after %s: %v\n%v", pass.Name, err, p)
		}
		if pass.Name == until {
			break
		}
	}
	return p
}
