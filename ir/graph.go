package ir

import "slices"

// Kind says where a value comes from.
type Kind uint8

const (
	Temp   Kind = iota // a node's result
	Input              // of the function: block input, batch, saved or incoming gradient
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

// Place is where the memory pass put a value: bytes from the start of an arena region, or from the start of
// the layer's part of it.
type Place struct {
	Region string // "" before the memory pass
	Offset int
}

// Param is a parameter of a segment's block: one tensor a layer.
type Param struct {
	Name  string  // within the segment
	Tied  string  // segment.name of the parameter that this one is, "" for its own
	Init  string  // "zeros", "ones" or "normal"
	Std   float64 // of a normal
	First int     // rows of the first dim that init draws, the others begin at 0; 0: all
	Zero  int     // 1 + a row of the first dim that begins at 0, 0: none
	Decay bool    // weight decay applies

	Balance bool // no gradient moves it: what is added to experts' scores moves against how many choices each gets
}

// Attr are a node's attributes; each op's row says which it reads.
type Attr struct {
	Dim, To Dim     // the dim that an op works along; what it becomes
	Axes    []Axis  // of a collective
	Monoid  Monoid  // of a collective
	Into    string  // what accumulate adds to: a parameter's name, or IntoLoss or IntoAux
	Eps     float64 // of a norm
	Scale   float64 // of scale and attention
	Theta   float64 // rotary base
	Rope    string  // rotary scaling, as RopeScaling prints it: the kind and its numbers, "llama3,8,1,4,8192"
	Drop    float64 // dropout probability
	Key     int     // of dropout, unique in the block
	Window  int     // of attention: keys at most this far back, 0 for all
	Softcap float64 // of softcap, and of attention's scores: x becomes cap·tanh(x/cap)
	Layers  Layers  // of the layers, which are local; where it is given, Window and Local hold in those alone
	Local   float64 // rotary base of local layers, whose positions are not scaled
	Turn    int     // rotary: how many elements of dim are turned, from Offset on; 0 for all
	Pairs   bool    // rotary: what turns together are neighbours, not the halves
	Causal  bool    // attention
	Alibi   bool    // attention: scores get slope(head)·(key's position - query's), Press et al. 2022
	Unit    bool    // of a norm: the gain is 1 + its parameter
	Inverse bool    // rotary: turn back
	Ends    bool    // of a collective over pp: the first and the last stage alone
	Offset  int     // of iota: added to each index; of part and rotary: the first element of dim
	Most    int     // of iota: indices above it become it, 0 for no bound
	Frozen  int     // of embed and its gradient: 1 + the row of the table that looking it up does not train, 0 for none

	Gate   string // of a router, what makes scores of its outputs: softmax or sigmoid
	Share  bool   // of a router: weights are shares of the chosen scores' sum (+ eps); all are times Scale
	Groups int    // of a router: experts in so many groups, of which
	Best   int    // so many are chosen from
	In     string // of a product: what its operands are rounded to, "e4m3,e5m2"; "" for nothing (see Eights)
	Round  bool   // done once for each round that the tokens need, with those that have places in it

	Bucket int // of a flat op
}

// Node is one op applied to values.
type Node struct {
	Op     Op
	Args   []*Value
	Outs   []*Value
	Attr   Attr
	Region Region
	From   string  // the value of the forward block that it works for
	Body   []*Node // of a fused node: the ops it does row by row
}

// Func is a straight-line program over tensors.
type Func struct {
	Name    string
	Inputs  []*Value // parameters too
	Nodes   []*Node
	Outputs []*Value
}

// Value finds a value by name, or nil.
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

// Reads tells whether an op of the function takes v, or the function returns it.
func (f *Func) Reads(v *Value) bool {
	return slices.Contains(f.Outputs, v) || slices.ContainsFunc(f.Nodes, func(n *Node) bool {
		return slices.Contains(n.Args, v)
	})
}

// Weights lists the function's parameters.
func (f *Func) Weights() []*Value {
	var ws []*Value
	for _, v := range f.Inputs {
		if v.Kind == Weight {
			ws = append(ws, v)
		}
	}
	return ws
}

// Users counts the uses of each value, returning it being one.
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
	Backward *Func // from pass grad on
	Weights  *Func // of a split backward: gradients of parameters that Backward leaves to it, from pass split on
	Logits   *Func // of the last segment: what sampling runs instead of Forward

	Remat  *Segment        // the same blocks where they are recomputed: they save less, and backward makes it again
	Passed map[string]bool // partial values that their users take unresolved, from pass partition on
}

// BlockName and DenseName are the names of the segments whose blocks have numbers, also where there is one: a model's
// blocks and, where its first ones have no experts and the others do, those first ones.
const (
	BlockName = "block"
	DenseName = "dense"
)

// Numbered tells whether names of the segment's parameters have the number of a block.
func (s *Segment) Numbered() bool { return s.Count > 1 || s.Name == BlockName || s.Name == DenseName }

// Func lists the segment's functions that exist.
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

// Accumulates lists the nodes that add to gradients of the segment's parameters.
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

// Model is logical: no axes, no ranks. Its batch dim is whatever size the builder gave; the partitioner
// sets it to one micro-batch of all replicas.
type Model struct {
	Name     string
	Segments []*Segment
}

// Segment finds a segment by name; nil if there is none.
func (m *Model) Segment(name string) *Segment {
	for _, s := range m.Segments {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// RematName is the name of the segment's recomputed variant.
func (s *Segment) RematName() string { return s.Name + ".remat" }

// Variants lists the segments, each before its recomputed variant if it has one.
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

// Clone copies a function deeply; parameters are shared.
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

// Params is the number of logical parameter elements, tied ones counted once.
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

// What a forward function accumulates into beside parameters' gradients: numbers of the step.
const (
	IntoLoss = "loss" // the sum of the tokens' losses
	IntoAux  = "aux"  // the sum over sequences of what routers are trained with beside the loss
)

// Scalar tells whether an accumulate adds to a number of the step, not to a gradient.
func (a *Attr) Scalar() bool { return a.Into == IntoLoss || a.Into == IntoAux }
