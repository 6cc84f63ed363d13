package ir

// Op is an operation. Its row in the op table defines everything else.
type Op uint8

// opInfo is one row of the op table.
type opInfo struct {
	name     string
	doc      string // what it computes
	text     string // the rule
	rule     Rule   // parsed from text
	optional int    // number of operands at the end that may be absent
	monoid   Monoid // of a result that lacks a dim; Sum by default
	monoids  []Monoid
	linear   []uint16 // sets of operands in which the op is jointly linear, with a bit per operand
	grad     bool     // differentiable: passes.gradients has a function
	flops    float64  // per point of the iteration space (all dims of the node)
	work     func(n *Node, local Sizes) float64
	gathers  bool   // reads only as much of operand 0 as it writes
	scatters bool   // writes only as much as it reads
	stats    uint16 // results that are statistics, which are at least f32 in every program: a bit each
	ints     uint16 // operands that are indices: a bit each
	element  bool   // element-wise: the fuse pass may merge it with similar ops
	view     bool   // moves no bytes
	inPlace  bool   // its last result may have the memory of its first operand
	copies   bool   // moves numbers without changing them
	comm     bool   // a collective: inserted by partition and zero
	effect   bool   // has no result and must not be removed
	attrs    []string
	noKernel string // why there is no kernel yet, "" if there is one
}

// Info returns the op's row.
func (o Op) Info() *opInfo { return &ops[o] }

func (o Op) String() string { return ops[o].name }

// Doc returns one line about what the op computes.
func (o Op) Doc() string { return ops[o].doc }

// Rule returns the op's einsum.
func (o Op) Rule() string { return ops[o].text }

// Attrs returns the names of the attributes that the op reads.
func (o Op) Attrs() []string { return ops[o].attrs }

// Comm reports whether the op is a collective or its local counterpart, slice.
func (o Op) Comm() bool { return ops[o].comm }

// Element reports whether the op is element-wise.
func (o Op) Element() bool { return ops[o].element }

// Row returns the dims of a row, for ops that compute each row of the result from one row of each operand: norms and
// their gradients, by the operand, and the gradients of log-sum-exp and pick. It returns nil for other ops.
func (n *Node) Row() (row []Dim) {
	operand, without := Type{}, Type{}
	switch n.Op {
	case OpLayerNorm, OpRMSNorm:
		operand = n.Args[1].Type
	case OpLayerNormDX, OpRMSNormDX:
		operand = n.Args[2].Type
	case OpLogSumExpGrad, OpPickGrad:
		operand, without = n.Outs[0].Type, n.Args[0].Type
	}
	for _, d := range operand.Dims {
		if !without.Has(d.Dim) {
			row = append(row, d.Dim)
		}
	}
	return row
}

// Statistic reports whether result i is at least f32 in every program: sums of many terms, and inputs of the loss.
func (o Op) Statistic(i int) bool { return ops[o].stats>>i&1 == 1 }

// Index reports whether operand i is an index.
func (o Op) Index(i int) bool { return ops[o].ints>>i&1 == 1 }

// View reports whether the op's result has its operand's memory.
func (o Op) View() bool { return ops[o].view }

// NoWork reports whether the op only says where values are.
func (o Op) NoWork() bool { return ops[o].view || o == OpSides }

// InPlace reports whether the node's last result may have the memory of its first operand.
func InPlace(n *Node) bool { return ops[n.Op].inPlace || n.Op == OpRope && n.Args[0].Type.Has(Side) }

// Attends reports whether the op is attention or its gradient, which need all keys of a query.
func (o Op) Attends() bool {
	return o == OpAttention || o == OpAttentionGrad || o == OpAttentionGradSides
}

// Effect reports whether the op runs for its effect instead of a result.
func (o Op) Effect() bool { return ops[o].effect }

// NoKernel returns why no kernel exists for the op yet, or "".
func (o Op) NoKernel() string { return ops[o].noKernel }

// Differentiable reports whether gradients pass through the op. They do not pass through integers, gradients and
// collectives.
func (o Op) Differentiable() bool { return ops[o].grad }

// LinearIn reports whether the op is jointly linear in exactly the operands of mask, so that they may all be
// sum-partial over the same axes.
func (o Op) LinearIn(mask uint16) bool {
	for _, l := range ops[o].linear {
		if l == mask {
			return true
		}
	}
	return false
}

// Monoid returns the monoid that combines the partials of result i.
func (o Op) Monoid(i int) Monoid {
	if row := &ops[o]; i < len(row.monoids) {
		return row.monoids[i]
	} else if row.monoid != NoMonoid {
		return row.monoid
	}
	return Sum
}

func (r *opInfo) renames() bool {
	for _, v := range r.rule.vars {
		if v.renamed {
			return true
		}
	}
	return false
}

// ParseOp returns the op of that name.
func ParseOp(s string) (Op, bool) {
	for o := range ops {
		if ops[o].name == s {
			return Op(o), true
		}
	}
	return 0, false
}

// Ops returns all ops in the order of the table.
func Ops() []Op {
	out := make([]Op, NumOps)
	for i := range out {
		out[i] = Op(i)
	}
	return out
}

func init() {
	for i := range ops {
		ops[i].rule = mustRule(ops[i].text)
	}
}
