package ir

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// A Rule is the einsum of an op: the variables of each operand and each result. The package comment defines the
// notation.
type Rule struct {
	text string
	vars []variable
	nIn  int
	nOut int
}

// variable is one letter of a rule. in and out have a bit for each operand and result that contains it.
type variable struct {
	name    byte
	in, out uint16
	star    bool // any number of dims
	whole   bool // cannot be split
	renamed bool // results contain it under the name of the node's To
	merges  byte // the variable whose dims it merges, or 0
}

// mustRule parses a rule of the op table.
func mustRule(text string) Rule {
	r := Rule{text: text}
	ins, outs, ok := strings.Cut(text, "->")
	if !ok {
		panic("ir: rule without ->: " + text)
	}
	r.nIn, r.nOut = r.side(ins, false), r.side(outs, true)
	return r
}

func (r *Rule) side(text string, out bool) int {
	if strings.TrimSpace(text) == "" {
		return 0
	}
	operands := strings.Split(text, ",")
	for i, o := range operands {
		for _, term := range strings.Fields(o) {
			v := r.term(term)
			if out {
				v.out |= 1 << i
			} else {
				v.in |= 1 << i
			}
		}
	}
	return len(operands)
}

// term returns the variable of one term, which it adds if it is new.
func (r *Rule) term(s string) *variable {
	whole := strings.HasPrefix(s, "!")
	name := strings.TrimPrefix(s, "!")[0]
	i := slices.IndexFunc(r.vars, func(v variable) bool { return v.name == name })
	if i < 0 {
		i = len(r.vars)
		r.vars = append(r.vars, variable{name: name})
	}
	v := &r.vars[i]
	v.whole = v.whole || whole
	v.star = v.star || strings.Contains(s, "*")
	v.renamed = v.renamed || strings.HasSuffix(s, "'")
	if j := strings.IndexByte(s, '('); j >= 0 {
		v.merges = s[j+1]
	}
	return v
}

func (r Rule) String() string { return r.text }

// Use is what a node's rule says about one dim.
type Use struct {
	Dim     Dim
	In, Out uint16 // operands and results that have it, a bit each
	Whole   bool
	To      Dim   // its name in results, if the op renames it
	Merged  []Dim // the dims that it merges, if any
}

// Lacks reports whether operands have the dim but result i does not, so that splitting the dim makes the result
// partial.
func (u Use) Lacks(i int) bool { return u.In != 0 && u.Out&(1<<i) == 0 }

// Uses applies the rule to a node. It returns one Use per dim, in order of first occurrence. It fails if the node's
// operands and results do not fit the rule.
func (n *Node) Uses() ([]Use, error) {
	r := n.Op.Info().rule
	if len(n.Args) < r.nIn-n.Op.Info().optional || len(n.Args) > r.nIn || len(n.Outs) != r.nOut {
		return nil, fmt.Errorf("%v has %d operands and %d results, which do not fit its rule %s", n.Op, len(n.Args),
			len(n.Outs), r)
	}
	var room [usualDims]Use
	uses := slices.Clone(n.occurrences(room[:0]))
	bound := make([]int, len(r.vars))
	for i := range uses {
		v, err := r.bind(n, uses[i])
		if err != nil {
			return nil, err
		}
		bound[v]++
		uses[i].Whole = r.vars[v].whole
		if r.vars[v].merges != 0 {
			uses[i].Merged = r.dimsOf(n, uses, r.vars[v].merges)
		}
	}
	for i, v := range r.vars {
		if !v.star && bound[i] != 1 && (v.in&n.present() != 0 || v.out != 0) {
			return nil, fmt.Errorf("%v: %d dims are %c in its rule %s, which must be 1", n.Op, bound[i], v.name, r)
		}
	}
	return uses, nil
}

// present returns a bit for each operand that the node has.
func (n *Node) present() uint16 { return 1<<len(n.Args) - 1 }

// usualDims is a number of dims that few nodes exceed.
const usualDims = 8

// occurrences returns the dims of the node with the operands and results that have each. It appends to uses, whose
// capacity it reuses.
func (n *Node) occurrences(uses []Use) []Use {
	find := func(d Dim) *Use {
		for i := range uses {
			if uses[i].Dim == d {
				return &uses[i]
			}
		}
		uses = append(uses, Use{Dim: d})
		return &uses[len(uses)-1]
	}
	for i, a := range n.Args {
		for _, e := range a.Type.Dims {
			find(e.Dim).In |= 1 << i
		}
	}
	rename := n.Attr.To != "" && n.Op.Info().renames()
	for i, o := range n.Outs {
		for _, e := range o.Type.Dims {
			if rename && e.Dim == n.Attr.To {
				u := find(n.Attr.Dim)
				u.Out, u.To = u.Out|1<<i, n.Attr.To
				continue
			}
			find(e.Dim).Out |= 1 << i
		}
	}
	return uses
}

// bind returns the variable of a dim. If a starred and a single variable occur in the same operands and results, the
// node's Dim is the single one.
func (r Rule) bind(n *Node, u Use) (int, error) {
	present, best := n.present(), -1
	for i, v := range r.vars {
		if v.in&present != u.In || v.out != u.Out || v.renamed != (u.To != "") {
			continue
		}
		if best < 0 || v.star != (u.Dim == n.Attr.Dim) {
			best = i
		}
	}
	if best < 0 {
		return 0, fmt.Errorf("%v: dim %s occurs in operands %s and results %s, which its rule %s does not allow",
			n.Op, u.Dim, bitList(u.In), bitList(u.Out), r)
	}
	return best, nil
}

// dimsOf returns the dims that belong to variable name.
func (r Rule) dimsOf(n *Node, uses []Use, name byte) []Dim {
	var dims []Dim
	for _, u := range uses {
		if v, err := r.bind(n, u); err == nil && r.vars[v].name == name {
			dims = append(dims, u.Dim)
		}
	}
	return dims
}

func bitList(mask uint16) string {
	var s []string
	for m := mask; m != 0; m &= m - 1 {
		s = append(s, fmt.Sprint(bits.TrailingZeros16(m)))
	}
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ",")
}
