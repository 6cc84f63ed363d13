package ir

import (
	"strings"
	"testing"
)

// wrongMoves are collectives that would compute something else than their types say. Each stands in a function on
// the mesh tp=2 dp=2, after the inputs x : X and before a return of the result.
var wrongMoves = []struct{ name, input, line, want string }{
	{"sum of what is whole", "f32[batch=4@dp,hidden=8]",
		"y = all_reduce x {axes=tp monoid=sum} : f32[batch=4@dp,hidden=8] !norm",
		`all_reduce of f32[batch=4@dp,hidden=8]: it combines by "sum", but the operand's parts by ""`},
	{"scatter of what is whole", "f32[batch=4@dp,hidden=8]",
		"y = reduce_scatter x {dim=hidden axes=tp monoid=sum} : f32[batch=4@dp,hidden=8@tp] !norm",
		`reduce_scatter of f32[batch=4@dp,hidden=8]: it combines by "sum", but the operand's parts by ""`},
	{"other monoid", "f32[batch=4,hidden=8] sum@dp",
		"y = all_reduce x {axes=dp monoid=max} : f32[batch=4,hidden=8] !norm",
		`all_reduce of f32[batch=4,hidden=8] sum@dp: it combines by "max", but the operand's parts by "sum"`},
	{"other axis", "f32[batch=4,hidden=8] sum@dp",
		"y = all_reduce x {axes=tp monoid=sum} : f32[batch=4,hidden=8] sum@dp !norm",
		`all_reduce of f32[batch=4,hidden=8] sum@dp: the operand is not partial over tp`},
	{"scatter of no dim", "f32[batch=4,hidden=8] sum@dp",
		"y = reduce_scatter x {dim=ffn axes=dp monoid=sum} : f32[batch=4,hidden=8] !norm",
		`reduce_scatter of f32[batch=4,hidden=8] sum@dp: it has no dim ffn`},
	{"major axis first", "f32[batch=4,hidden=8@dp@tp]",
		"y = all_gather x {dim=hidden axes=dp} : f32[batch=4,hidden=8@tp] !norm",
		`all_gather of f32[batch=4,hidden=8@dp@tp]: [dp] are not the last axes that split hidden`},
	{"gather of what is whole", "f32[batch=4,hidden=8]",
		"y = all_gather x {dim=hidden axes=dp} : f32[batch=4,hidden=8] !norm",
		`all_gather of f32[batch=4,hidden=8]: [dp] are not the last axes that split hidden`},
	{"to itself", "f32[batch=4@dp,hidden=8]",
		"y = all_to_all x {dim=batch to=batch axes=dp} : f32[batch=4@dp,hidden=8] !norm",
		`all_to_all of f32[batch=4@dp,hidden=8]: it has no other dim batch`},
	{"slice of no dim", "f32[batch=4,hidden=8]", "y = slice x {dim=ffn axes=dp} : f32[batch=4,hidden=8] !norm",
		`slice of f32[batch=4,hidden=8]: it has no dim ffn`},
	{"no axes", "f32[batch=4,hidden=8]", "y = slice x {dim=hidden} : f32[batch=4,hidden=8] !norm",
		`slice has no axes`},
	{"slice twice", "f32[batch=4@dp,hidden=8]", "y = slice x {dim=hidden axes=dp} : f32[batch=4@dp,hidden=8@dp] !norm",
		`y: f32[batch=4@dp,hidden=8@dp] uses an axis twice`},
	{"partial returned", "f32[batch=4,hidden=8] sum@dp", "y = scale x {scale=2} : f32[batch=4,hidden=8] sum@dp !norm",
		`y is partial, but it is returned: f32[batch=4,hidden=8] sum@dp`},
}

func TestCheckCollectives(t *testing.T) {
	head := "program m stage 0\nplan " + SerialPlan(1, 4, FullPrecision(F32)).Text() +
		"\nmesh tp=2 dp=2\nrecipe optimizer=sgd\nsegment s x1\nfunc s.forward\n  input x : "
	for _, w := range wrongMoves {
		p, err := ParseProgram(head + w.input + "\n  " + w.line + "\n  return y\n")
		if err != nil {
			t.Errorf("%s: %v", w.name, err)
			continue
		}
		if err := p.Check([]string{"partition"}); err == nil || !strings.HasSuffix(err.Error(), w.want) {
			t.Errorf("%s:\n got %v\nwant %s", w.name, err, w.want)
		}
	}
}

// A gradient in another layout than its parameter's would be added to other elements.
func TestCheckGradientLayout(t *testing.T) {
	text := strings.Replace(sound, "PLAN", SerialPlan(1, 4, FullPrecision(F32)).Text(), 1)
	p, err := ParseProgram(strings.Replace(text, "input d.w : f32[hidden=8,ffn=6@tp]",
		"input d.w : f32[hidden=8@tp,ffn=6]", 1))
	if err != nil {
		t.Fatal(err)
	}
	const want = "a gradient with layout f32[hidden=8@tp,ffn=6] is added to a parameter with layout " +
		"f32[hidden=8,ffn=6@tp]"
	if err := p.Check([]string{"partition"}); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
