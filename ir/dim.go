package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Dim names a dimension of a tensor; a dim occurs once in a tensor.
type Dim string

// The dims of transformers. Model builders may add others.
const (
	Batch    Dim = "batch"
	Seq      Dim = "seq"      // the query's position
	KSeq     Dim = "k_seq"    // the key's position
	Hidden   Dim = "hidden"   // the residual stream
	Head     Dim = "head"     // K/V heads
	Group    Dim = "group"    // query heads of one K/V head
	HeadDim  Dim = "head_dim" // of queries and keys
	VDim     Dim = "v_dim"    // of values
	FFN      Dim = "ffn"
	Vocab    Dim = "vocab"
	Position Dim = "position" // rows of a position table
	TypeID   Dim = "type_id"  // rows of a token-type table
	Patch    Dim = "patch"    // the numbers of one patch of a picture
	Expert   Dim = "expert"
	SlotDim  Dim = "slot" // places for tokens as experts receive them: so many of each expert

	Candidate Dim = "candidate"  // experts as the router scores them
	Choice    Dim = "choice"     // experts that a token goes to
	ExpertFFN Dim = "expert_ffn" // width of an expert's hidden layer

	QLatent   Dim = "q_latent"   // what latent attention's queries are projected from
	KVLatent  Dim = "kv_latent"  // what its keys and values are projected from
	RotaryDim Dim = "rotary_dim" // of its queries and keys, with positions
)

// Padded tells whether the dim may be split unevenly: the last parts hold padding, which is zero in
// parameters and which no op of the table reads.
func (d Dim) Padded() bool { return d == Vocab }

// Axis names an axis of the mesh, or a sub-axis. Where it splits a dim into balanced causal parts it is labelled: part
// i of n over zigzag:cp holds chunks i and 2n-1-i of 2n. Where the parts have moved on round the axis the label says
// how far: rank i of zigzag:cp+3 has the part of rank i-3. A labelled axis is another split than the plain one; its
// ranks are the same.
type Axis string

const zigzagLabel = "zigzag:"

// Zigzag is the axis with the label.
func (a Axis) Zigzag() Axis { return zigzagLabel + a }

// IsZigzag tells whether the axis has the label.
func (a Axis) IsZigzag() bool { return strings.HasPrefix(string(a), zigzagLabel) }

// Plain is the axis without a label.
func (a Axis) Plain() Axis { return Axis(strings.TrimPrefix(string(a.Turned(0)), zigzagLabel)) }

// Turned is the axis with its parts moved on by so many ranks from where they belong.
func (a Axis) Turned(by int) Axis {
	home, _, _ := strings.Cut(string(a), "+")
	if by == 0 {
		return Axis(home)
	}
	return Axis(home + "+" + strconv.Itoa(by))
}

// Turn is by how many ranks the parts have moved on.
func (a Axis) Turn() int {
	_, by, _ := strings.Cut(string(a), "+")
	n, _ := strconv.Atoi(by)
	return n
}

// Plain are the axes without labels.
func Plain(axes []Axis) []Axis {
	out := slices.Clone(axes)
	for i, a := range out {
		out[i] = a.Plain()
	}
	return out
}

// Region names a part of a block in which a plan gives each dim one layout.
type Region string

const (
	Norm      Region = "norm" // norms and the residual stream
	Attention Region = "attention"
	Core      Region = "core" // attention's softmax itself, where a plan lays that out otherwise than its projections
	MLP       Region = "mlp"
	Dispatch  Region = "dispatch" // the router, and tokens on their way to experts and back
	Experts   Region = "expert"
	VocabR    Region = "vocab" // embedding, logits, loss
	Update    Region = "update"
)

// Monoid says how the ranks' parts of a partial value combine.
type Monoid uint8

const (
	NoMonoid Monoid = iota
	Sum
	Max
	LSE         // log-add-exp
	WeightedLSE // values weighted by a log-sum-exp that travels with them
)

var monoidNames = [...]string{"", "sum", "max", "lse", "wlse"}

func (m Monoid) String() string { return monoidNames[m] }

func parseMonoid(s string) (Monoid, bool) {
	i := slices.Index(monoidNames[:], s)
	return Monoid(max(i, 0)), i > 0
}

// Layout maps dims to the ordered axes that split them: the first axis is the major one.
type Layout map[Dim][]Axis

func (l Layout) String() string {
	var parts []string
	for d, axes := range l {
		if len(axes) > 0 {
			parts = append(parts, string(d)+"@"+joinAxes(axes, "@"))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func joinAxes(axes []Axis, sep string) string {
	s := make([]string, len(axes))
	for i, a := range axes {
		s[i] = string(a)
	}
	return strings.Join(s, sep)
}

func splitAxes(s, sep string) []Axis {
	var axes []Axis
	for _, p := range strings.Split(s, sep) {
		axes = append(axes, Axis(p))
	}
	return axes
}

// checkName accepts the names of dims, axes, values and segments.
func checkName(s string) error {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		case i > 0 && (c >= '0' && c <= '9' || c == '.' || c == '(' || c == ')'):
		default:
			return fmt.Errorf("%q is not a name", s)
		}
	}
	if s == "" {
		return fmt.Errorf("a name is empty")
	}
	return nil
}
