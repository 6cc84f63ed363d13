package ir

import "slices"

// Kind is the origin of a value.
type Kind uint8

const (
	Temp   Kind = iota // a node's result
	Input              // an input of the function: block input, batch, saved value or incoming gradient
	Weight             // a parameter
)

// Value is a tensor: an input, a parameter or a node's result.
type Value struct {
	Name  string // unique in its function
	Type  Type
	Kind  Kind
	Param *Param // of a Weight
	Def   *Node  // of a Temp
	Place Place
}

// Place is the location that the memory pass gave a value: bytes from the start of an arena region, or from the start
// of the layer's part of it.
type Place struct {
	Region string // "" before the memory pass
	Offset int
}

// Param is a parameter of a segment's block: one tensor per layer.
type Param struct {
	Name  string  // within the segment
	Tied  string  // segment.name of the parameter that this one is tied to, "" if it is its own
	Init  string  // "zeros", "ones" or "normal"
	Std   float64 // standard deviation of a normal distribution
	First int     // number of rows of the first dim that init draws; the others start at 0. 0: all rows are drawn
	Zero  int     // 1 + a row of the first dim that starts at 0; 0: none
	Decay bool    // weight decay applies

	LRMultiplier float64 // factor of the learning rate; 0: 1

	// Sides are the names of the model's parameters of which this one consists, and one GEMM multiplies by all of them.
	// Each is one index of dim side, but the first has all that the others leave. Empty: it is a parameter of the model
	// itself.
	Sides []string

	// a bias of experts' scores, which moves against the number of choices of each expert instead of along a gradient
	Balance bool
}

// Attr holds a node's attributes. Each op's row lists the ones that it reads.
type Attr struct {
	Dim, To       Dim     // the dim along which an op works, and the dim that it becomes
	AttentionMask         // of attention; Documents also of iota
	Axes          []Axis  // of a collective
	Monoid        Monoid  // of a collective
	Into          string  // what accumulate adds to: a parameter's name, IntoLoss or IntoAux
	Eps           float64 // of a norm
	Scale         float64 // of scale and attention
	Theta         float64 // base of the rotary frequencies
	Rope          string  // rotary scaling as RopeScaling prints it, the kind and its numbers: "llama3,8,1,4,8192"
	Drop          float64 // dropout probability
	Key           int     // of dropout, unique in the block
	Softcap       float64 // of softcap and of attention's scores: x becomes cap·tanh(x/cap)
	Layers        Layers  // which layers are local; if given, Window and Local apply only to those
	Local         float64 // base of the rotary frequencies in local layers, whose positions are not scaled
	Turn          int     // rotary: number of rotated elements of dim, from Offset on; 0 for all
	Pairs         bool    // rotary: rotated pairs are adjacent elements instead of elements of the two halves
	Alibi         bool    // attention: adds slope(head)·(key's position - query's) to scores (Press et al. 2022)
	Unit          bool    // of a norm: the gain is 1 + its parameter
	Inverse       bool    // rotary: rotates in the opposite direction
	FirstLast     bool    // of a collective over pp: only the first and the last stage take part
	Offset        int     // of iota: added to each index; of part, rotary: the first element of dim; of side: index
	Max           int     // of iota: larger indices become this one; 0 for no bound
	Frozen        int     // of embed and its gradient: 1 + the row of the table that lookups do not train, 0 for none

	Gate string // of a router: how outputs become scores, softmax or sigmoid
	// of a router: weights are normalized by the sum of the chosen scores (+ eps); all are multiplied by Scale
	Share  bool
	Groups int    // of a router: number of groups of experts,
	Best   int    // and of groups from which experts are chosen
	In     string // of a matmul: FP8 formats of its operands, "e4m3,e5m2"; "" for none (see FP8Matmuls)
	Round  bool   // runs once for each round that the tokens need, on the tokens that have slots in that round

	Bucket int // of a flat op
}

// AttentionMask says which keys a query of attention sees.
type AttentionMask struct {
	Causal bool // those up to its own position
	Window int  // the last ones, so many; 0: all. It requires Causal
	// Documents says that it sees those of its document, whose borders are in the batch (see [Model.BordersType]). The
	// iota of positions then counts from the beginning of each document.
	Documents bool
}

// Node is one op applied to values.
type Node struct {
	Op     Op
	Args   []*Value
	Outs   []*Value
	Attr   Attr
	Region Region
	From   string  // the value of the forward block for which the node computes
	Body   []*Node // of a fused node: the ops that it runs row by row
}

// SingleOp returns the op of a node that does a single op, nil if it does more.
func SingleOp(n *Node) *Node {
	switch {
	case n.Op != OpFused:
		return n
	case len(n.Body) == 1:
		return n.Body[0]
	}
	return nil
}

// OtherOperand returns an operand of a node that is not v, nil if there is none.
func OtherOperand(n *Node, v *Value) *Value {
	if i := slices.IndexFunc(n.Args, func(a *Value) bool { return a != v }); i >= 0 {
		return n.Args[i]
	}
	return nil
}

// Accumulates reports whether a node adds to its result, which is a gradient. It is known after pass memory.
func Accumulates(n *Node) bool { return n.Outs[0].Place.Region == PlaceGrad }

// JoinDims returns the dims of a join's operands: shared by both, between those and the last dim of the first operand,
// and the last dims a and b, which become d. Each row of the second operand is appended to all rows of the first that
// differ only in the dims between.
func (n *Node) JoinDims() (shared, between []Dim, a, b, d Extent) {
	x, y, z := n.Args[0].Type.Dims, n.Args[1].Type, n.Outs[0].Type.Dims
	for _, e := range x[:len(x)-1] {
		if y.Has(e.Dim) {
			shared = append(shared, e.Dim)
		} else {
			between = append(between, e.Dim)
		}
	}
	return shared, between, x[len(x)-1], y.Dims[len(y.Dims)-1], z[len(z)-1]
}

// Func is a straight-line program over tensors.
type Func struct {
	Name    string
	Inputs  []*Value // including parameters
	Nodes   []*Node
	Outputs []*Value
}

// Value returns the value of that name, or nil.
func (f *Func) Value(name string) *Value {
	for _, v := range f.Inputs {
		if v.Name == name {
			return v
		}
	}
	for _, n := range f.Nodes {
		for _, v := range n.Outs {
			if v.Name == name {
				return v
			}
		}
	}
	return nil
}

// Reads reports whether an op of the function takes v, or the function returns it.
func (f *Func) Reads(v *Value) bool {
	return slices.Contains(f.Outputs, v) || slices.ContainsFunc(f.Nodes, func(n *Node) bool {
		return slices.Contains(n.Args, v)
	})
}

// Weights returns the function's parameters.
func (f *Func) Weights() []*Value {
	var ws []*Value
	for _, v := range f.Inputs {
		if v.Kind == Weight {
			ws = append(ws, v)
		}
	}
	return ws
}

// Users counts the uses of each value. Returning it is a use.
func (f *Func) Users() map[*Value]int {
	users := make(map[*Value]int, len(f.Inputs)+len(f.Nodes))
	for _, n := range f.Nodes {
		for _, a := range n.Args {
			users[a]++
		}
	}
	for _, o := range f.Outputs {
		users[o]++
	}
	return users
}

// Segment is a run of Count blocks of one kind. The layer's index is an input of the block.
type Segment struct {
	Name     string
	Count    int
	Forward  *Func
	Backward *Func // after pass grad
	Weights  *Func // of a split backward pass: the gradients of parameters that Backward leaves to it, after pass split
	Logits   *Func // of the last segment: sampling runs it instead of Forward

	Remat  *Segment        // the variant of the blocks for recomputation: they save less, and backward recomputes it
	Passed map[string]bool // partial values that their users take unresolved, after pass partition
}

// Names of the segments whose blocks are numbered even if there is only one: a model's blocks and, if only the later
// blocks have experts, the leading ones without.
const (
	BlockName = "block"
	DenseName = "dense"
)

// Numbered reports whether names of the segment's parameters contain the number of a block.
func (s *Segment) Numbered() bool { return s.Count > 1 || s.Name == BlockName || s.Name == DenseName }

// Funcs returns the segment's functions that exist.
func (s *Segment) Funcs() []*Func {
	var fs []*Func
	if s == nil {
		return nil
	}
	for _, f := range []*Func{s.Forward, s.Backward, s.Weights, s.Logits} {
		if f != nil {
			fs = append(fs, f)
		}
	}
	return fs
}

// Accumulates returns the nodes that add to gradients of the segment's parameters.
func (s *Segment) Accumulates() []*Node {
	var ns []*Node
	for _, f := range []*Func{s.Backward, s.Weights} {
		if f == nil {
			continue
		}
		for _, n := range f.Nodes {
			if n.Op == OpAccumulate {
				ns = append(ns, n)
			}
		}
	}
	return ns
}

// Model is a logical model, without axes and ranks. Its batch dim has the size that the builder gave; the partitioner
// sets it to one micro-batch of all replicas.
type Model struct {
	Name     string
	Segments []*Segment
}

// Segment returns the segment of that name; nil if there is none.
func (m *Model) Segment(name string) *Segment {
	for _, s := range m.Segments {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// RematName returns the name of the segment's recomputed variant.
func (s *Segment) RematName() string { return s.Name + ".remat" }

// Variants returns the segments, each followed by its recomputed variant if it has one.
func (m *Model) Variants() []*Segment {
	var out []*Segment
	for _, s := range m.Segments {
		out = append(out, s)
		if s.Remat != nil {
			out = append(out, s.Remat)
		}
	}
	return out
}

// Clone copies the model deeply, so that passes can rewrite it.
func (m *Model) Clone() *Model {
	out := &Model{Name: m.Name}
	for _, s := range m.Segments {
		out.Segments = append(out.Segments, s.clone())
	}
	return out
}

func (s *Segment) clone() *Segment {
	if s == nil {
		return nil
	}
	return &Segment{Name: s.Name, Count: s.Count, Forward: s.Forward.Clone(), Backward: s.Backward.Clone(),
		Weights: s.Weights.Clone(),
		Logits:  s.Logits.Clone(), Remat: s.Remat.clone(), Passed: s.Passed}
}

// Clone copies a function deeply, except for parameters, which are shared.
func (f *Func) Clone() *Func {
	if f == nil {
		return nil
	}
	c := make(cloner, len(f.Inputs)+len(f.Nodes))
	out := &Func{Name: f.Name, Inputs: c.values(f.Inputs)}
	for _, n := range f.Nodes {
		out.Nodes = append(out.Nodes, c.node(n))
	}
	out.Outputs = c.values(f.Outputs)
	return out
}

type cloner map[*Value]*Value

func (c cloner) values(vs []*Value) []*Value {
	out := make([]*Value, len(vs))
	for i, v := range vs {
		if c[v] == nil {
			d := *v
			d.Type = v.Type.Clone()
			c[v] = &d
		}
		out[i] = c[v]
	}
	return out
}

func (c cloner) node(n *Node) *Node {
	d := *n
	d.Body = nil
	for _, b := range n.Body {
		d.Body = append(d.Body, c.node(b))
	}
	d.Args, d.Outs = c.values(n.Args), c.values(n.Outs)
	for _, o := range d.Outs {
		o.Def = &d
	}
	return &d
}

// Params returns the number of logical parameter elements. Tied parameters count once.
func (m *Model) Params() int64 {
	n := int64(0)
	for _, s := range m.Segments {
		for _, w := range s.Forward.Weights() {
			if w.Param.Tied == "" {
				n += int64(s.Count) * int64(w.Type.Elems())
			}
		}
	}
	return n
}

// Numbers of the step to which a forward function accumulates, in addition to parameters' gradients.
const (
	IntoLoss = "loss" // the sum of the tokens' losses
	IntoAux  = "aux"  // the sum over sequences of the routers' auxiliary losses
)

// Scalar reports whether an accumulate adds to a number of the step instead of a gradient.
func (a *Attr) Scalar() bool { return a.Into == IntoLoss || a.Into == IntoAux }
