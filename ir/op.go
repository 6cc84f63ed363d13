package ir

// Op is an operation; its row in the op table says everything else.
type Op uint8

// opInfo is one row of the op table.
type opInfo struct {
	name     string
	doc      string // what it computes
	text     string // the rule
	rule     Rule   // parsed from text
	optional int    // operands that may be left out, from the last
	monoid   Monoid // of a result that lacks a dim; Sum unless said
	monoids  []Monoid
	linear   []uint16 // sets of operands in which the op is jointly linear, a bit for each operand
	grad     bool     // gradients pass: passes.gradients has a function
	flops    float64  // per point of the iteration space (all dims of the node)
	work     func(n *Node, local Sizes) float64
	gathers  bool   // reads only as much of operand 0 as it writes
	scatters bool   // writes only as much as it reads
	stats    uint16 // results that are statistics, at least f32 whatever the program computes in: a bit for each
	ints     uint16 // operands that are indices: a bit for each
	element  bool   // element by element: the fuse pass may join it with its like
	view     bool   // moves no bytes
	inPlace  bool   // its last result may lie where its first operand does
	copies   bool   // moves numbers as they are stored
	comm     bool   // a collective: inserted by partition and zero
	effect   bool   // has no result and must stay
	attrs    []string
	noKernel string // why there is no kernel yet, "" if there is one
}

// Info is the op's row.
func (o Op) Info() *opInfo { return &ops[o] }

func (o Op) String() string { return ops[o].name }

// Doc says in a line what the op computes.
func (o Op) Doc() string { return ops[o].doc }

// Rule is the op's einsum.
func (o Op) Rule() string { return ops[o].text }

// Attrs names the attributes that the op reads.
func (o Op) Attrs() []string { return ops[o].attrs }

// Comm tells whether the op is a collective or its local counterpart, slice.
func (o Op) Comm() bool { return ops[o].comm }

// Element tells whether the op works element by element.
func (o Op) Element() bool { return ops[o].element }

// Row is the dims that an op takes together where it makes each row of its result from one row of each operand: of
// norms and their gradients by the operand, and of the gradients of a log-sum-exp and of a pick. It is nil for other
// ops.
func (n *Node) Row() (row []Dim) {
	of, without := Type{}, Type{}
	switch n.Op {
	case OpLayerNorm, OpRMSNorm:
		of = n.Args[1].Type
	case OpLayerNormDX, OpRMSNormDX:
		of = n.Args[2].Type
	case OpLogSumExpGrad, OpPickGrad:
		of, without = n.Outs[0].Type, n.Args[0].Type
	}
	for _, d := range of.Dims {
		if !without.Has(d.Dim) {
			row = append(row, d.Dim)
		}
	}
	return row
}

// Statistic tells whether result i is kept in at least f32, whatever the program computes in: sums that many terms
// enter, and what a loss is made of.
func (o Op) Statistic(i int) bool { return ops[o].stats>>i&1 == 1 }

// Index tells whether operand i is an index.
func (o Op) Index(i int) bool { return ops[o].ints>>i&1 == 1 }

// View tells whether the op's result is its operand's memory.
func (o Op) View() bool { return ops[o].view }

// InPlace tells whether the op's last result may lie where its first operand does.
func (o Op) InPlace() bool { return ops[o].inPlace }

// Attends tells whether the op is attention or its gradient, which need all keys of a query.
func (o Op) Attends() bool { return o == OpAttention || o == OpAttentionGrad }

// Effect tells whether the op is done for what it changes, not for a result.
func (o Op) Effect() bool { return ops[o].effect }

// NoKernel is why no kernel exists for the op yet, or "".
func (o Op) NoKernel() string { return ops[o].noKernel }

// Differentiable tells whether gradients pass. They do not through integers, gradients themselves and collectives.
func (o Op) Differentiable() bool { return ops[o].grad }

// LinearIn tells whether the op is jointly linear in exactly the operands of mask, so that they may all be
// sum-partial over the same axes.
func (o Op) LinearIn(mask uint16) bool {
	for _, l := range ops[o].linear {
		if l == mask {
			return true
		}
	}
	return false
}

// Monoid combines the partials of result i.
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

// ParseOp finds an op by name.
func ParseOp(s string) (Op, bool) {
	for o := range ops {
		if ops[o].name == s {
			return Op(o), true
		}
	}
	return 0, false
}

// Ops lists all ops in the order of the table.
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
