package cu

import (
	"fmt"
	"strings"
)

// An element is what a link does with an element: the text of it, of $a, $b and $c.
type element struct {
	text string
	two  bool // reads b
}

var elements = map[string]element{
	"Copy": {text: "$a"}, "Add": {"$a + $b", true}, "Sub": {"$a - $b", true}, "Mul": {"$a * $b", true},
	"Scale": {text: "$c * $a"},
	"Gelu":  {text: "gelu($a)"}, "GeluErf": {text: "geluErf($a)"}, "Silu": {text: "silu($a)"},
	"Sigmoid": {text: "sigmoid($a)"}, "Relu": {text: "relu($a)"},
	"Softcap":  {text: "softcap($a, $c)"},
	"GeluGrad": {"$a * geluGrad($b)", true}, "GeluErfGrad": {"$a * geluErfGrad($b)", true},
	"SiluGrad":    {"$a * siluGrad($b)", true},
	"SigmoidGrad": {"$a * sigmoidGrad($b)", true}, "ReluGrad": {"$a * reluGrad($b)", true},
	"SoftcapGrad": {"$a * softcapGrad($b, $c)", true},
}

// A norm sums over rows.
type norm struct{ sums, centred, grad bool }

var norms = map[string]norm{
	"LayerNorm": {sums: true, centred: true}, "RMSNorm": {sums: true},
	"LayerNormDX": {sums: true, centred: true, grad: true}, "RMSNormDX": {sums: true, grad: true},
}

// types are element types by their names in runtime/num.
var types = map[string]string{"BF16": "bf16", "F16": "f16"}

// expression is the text of what link k sets an element to.
func (p *printer) expression(k int) string {
	l := &p.c.Links[k]
	text := func(i int) string { return p.element(i, k) }
	switch l.Do {
	case "LayerNorm", "RMSNorm":
		s := fmt.Sprintf("%s * %s", p.normed(k), p.gain(k, l.B))
		if len(l.More) > 0 {
			s += " + " + text(l.More[0])
		}
		return s
	case "LayerNormDX":
		return fmt.Sprintf("r%[1]d * (%[2]s * %[3]s - sum%[1]d - %[4]s * along%[1]d)", k, text(l.A),
			p.gain(k, l.More[0]), p.normed(k))
	case "RMSNormDX":
		return fmt.Sprintf("r%[1]d * (%[2]s * %[3]s - %[4]s * along%[1]d)", k, text(l.A), p.gain(k, l.More[0]),
			p.normed(k))
	case "ExpGrad":
		return fmt.Sprintf("j + k < valid%[1]d ? %[2]s * drift%[1]d * power(%[3]s, base%[1]d) : (A)0", k, text(l.A),
			text(l.B))
	case "PickGrad":
		return fmt.Sprintf("j + k == at%d ? %s : (A)0", l.More[0], text(l.A))
	case "AddPick":
		return fmt.Sprintf("j + k == at%d ? %s + %s : %s", l.More[0], text(l.A), p.rounded(text(l.B),
			l.Round), text(l.A))
	}
	e, ok := elements[l.Do]
	if !ok {
		panic("cu: no link does " + l.Do)
	}
	b := ""
	if e.two {
		b = text(l.B)
	}
	return strings.NewReplacer("$a", text(l.A), "$b", b, "$c", p.number(l.C)).Replace(e.text)
}

// normed is a norm's operand without its mean and deviation.
func (p *printer) normed(k int) string {
	l := &p.c.Links[k]
	x := l.A
	if norms[l.Do].grad {
		x = l.B
	}
	if norms[l.Do].centred {
		return fmt.Sprintf("((%s - mean%d) * r%d)", p.element(x, k), k, k)
	}
	return fmt.Sprintf("(%s * r%d)", p.element(x, k), k)
}

// gain is a norm's, with what it is added to.
func (p *printer) gain(k, operand int) string {
	if base := p.c.Links[k].Base; base != 0 {
		return fmt.Sprintf("(%s + %s)", p.number(base), p.element(operand, k))
	}
	return p.element(operand, k)
}

// rounded is an expression, rounded to a type.
func (p *printer) rounded(text, to string) string {
	if to == "" {
		return text
	}
	return fmt.Sprintf("rounded<%s>(%s)", types[to], text)
}

// number is a literal of the type that is computed in.
func (p *printer) number(v float64) string { return fmt.Sprintf("(A)%g", v) }
