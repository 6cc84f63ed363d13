package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Dim is the name of a dimension of a tensor. A dim occurs at most once in a tensor.
type Dim string

// The dims of transformers. Model builders may add others.
const (
	Batch    Dim = "batch"
	Seq      Dim = "seq"      // the query's position
	KSeq     Dim = "k_seq"    // the key's position
	Hidden   Dim = "hidden"   // the residual stream
	Head     Dim = "head"     // K/V heads
	Group    Dim = "group"    // query heads per K/V head
	HeadDim  Dim = "head_dim" // of queries and keys
	VDim     Dim = "v_dim"    // of values
	FFN      Dim = "ffn"
	Vocab    Dim = "vocab"
	Position Dim = "position" // rows of a position table
	TypeID   Dim = "type_id"  // rows of a segment table
	Patch    Dim = "patch"    // the numbers of one patch of an image
	Expert   Dim = "expert"
	SlotDim  Dim = "slot" // slots for tokens that are sent to experts, the same number for each expert

	Candidate Dim = "candidate"  // experts as the router scores them
	Choice    Dim = "choice"     // experts of a token
	ExpertFFN Dim = "expert_ffn" // width of an expert's hidden layer

	QLatent   Dim = "q_latent"   // latent vector of MLA's queries
	KVLatent  Dim = "kv_latent"  // latent vector of MLA's keys and values
	RotaryDim Dim = "rotary_dim" // elements of MLA's queries and keys that have positions

	Side Dim = "side" // parameters that lie side by side, so that one GEMM multiplies by all of them
)

// Padded reports whether ranks may hold more of the dim than their part of its size. The rest is padding at the end of
// a part, which is zero in parameters and gradients and which no loss depends on.
func (d Dim) Padded() bool { return d == Vocab }

// Axis is the name of a mesh axis, or of a sub-axis. The label zigzag marks an axis that splits a dim into balanced
// causal parts: part i of n over zigzag:cp holds chunks i and 2n-1-i of 2n. A suffix tells by how many ranks the parts
// have moved along the axis: rank i of zigzag:cp+3 has the part of rank i-3. A labelled axis has the same ranks as the
// plain one, but splits differently.
type Axis string

const zigzagLabel = "zigzag:"

// Zigzag returns the axis with the label.
func (a Axis) Zigzag() Axis { return zigzagLabel + a }

// IsZigzag reports whether the axis has the label.
func (a Axis) IsZigzag() bool { return strings.HasPrefix(string(a), zigzagLabel) }

// Plain returns the axis without labels.
func (a Axis) Plain() Axis { return Axis(strings.TrimPrefix(string(a.Turned(0)), zigzagLabel)) }

// Turned returns the axis with its parts moved by a number of ranks from their home.
func (a Axis) Turned(by int) Axis {
	home, _, _ := strings.Cut(string(a), "+")
	if by == 0 {
		return Axis(home)
	}
	return Axis(home + "+" + strconv.Itoa(by))
}

// Turn returns by how many ranks the parts have moved.
func (a Axis) Turn() int {
	_, by, _ := strings.Cut(string(a), "+")
	n, _ := strconv.Atoi(by)
	return n
}

// Plain returns the axes without labels.
func Plain(axes []Axis) []Axis {
	out := slices.Clone(axes)
	for i, a := range out {
		out[i] = a.Plain()
	}
	return out
}

// Region is a part of a block in which a plan gives each dim one layout.
type Region string

const (
	Norm      Region = "norm" // norms and the residual stream
	Attention Region = "attention"
	Core      Region = "core" // softmax attention itself, if a plan gives it another layout than its projections
	MLP       Region = "mlp"
	Dispatch  Region = "dispatch" // the router, and tokens that are sent to experts and back
	Experts   Region = "expert"
	VocabR    Region = "vocab" // embedding, logits, loss
	Update    Region = "update"
)

// Monoid says how the ranks' parts of a partial value are combined.
type Monoid uint8

const (
	NoMonoid Monoid = iota
	Sum
	Max
	LSE         // log-add-exp
	WeightedLSE // values weighted by a log-sum-exp that accompanies them
)

var monoidNames = [...]string{"", "sum", "max", "lse", "wlse"}

func (m Monoid) String() string { return monoidNames[m] }

func parseMonoid(s string) (Monoid, bool) {
	i := slices.Index(monoidNames[:], s)
	return Monoid(max(i, 0)), i > 0
}

// Layout maps dims to the ordered axes that split them, of which the first is the major one.
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
		return fmt.Errorf("a name must not be empty")
	}
	return nil
}
