//go:build cuda && linux

package cuda

/*
#include <stdlib.h>
#include "cudnn.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// Attention describes attention over q [Batch, Seq, KHeads*Group, Dim], k and v [Batch, KSeq, KHeads, Dim]:
//
//	o_i = sum over j of exp(s_ij - lse_i) v_j, s_ij = Scale * q_i·k_j, lse_i = log of the sum over j of exp(s_ij)
//
// Query head h reads head h/Group of the keys. Query i sees all keys or, if Causal, those with j <= i; with
// a Window, those with j > i-Window. lse is [Batch, Seq, KHeads*Group] in f32.
type Attention struct {
	Batch, Seq, KSeq, KHeads, Group, Dim int
	// elements from one position of q, k, v and their gradients to the next if they lie side by side; 0: contiguous
	Pitch  int
	Scale  float64
	Causal bool
	Window int // 0 means no window
	// type of q, k, v, o and their gradients: ValueFloat16 or ValueBFloat16
	Type Value
}

// Indices of the operands of [Stream.Attend], for attention and for its gradient.
const (
	AttentionO  = iota // output; input of the gradient
	AttentionL         // lse: output; input of the gradient
	AttentionQ         // q, k, v: inputs
	AttentionK         //
	AttentionV         //
	AttentionDO        // input
	AttentionDQ        // dq, dk, dv: outputs
	AttentionDK        //
	AttentionDV        //
	attentionOperands
)

// hasPitch marks the operands whose positions are [Attention.Pitch] elements apart.
var hasPitch = [attentionOperands]bool{AttentionQ: true, AttentionK: true, AttentionV: true, AttentionDQ: true,
	AttentionDK: true, AttentionDV: true}

// AttentionOperands holds the addresses of the operands, multiples of [Alignment]. Attention ignores those
// that only the gradient uses.
type AttentionOperands [attentionOperands]Pointer

// AttentionPlan is attention, or its gradient, with a chosen engine. It can run any number of times.
type AttentionPlan struct {
	Attention
	Workspace int64 // bytes that a run needs
	Grad      bool

	attentions *Attentions
	g          *descriptorBuilder
	plan       *descriptor
	bind       []int // operand of each pointer of a run, or fromScratch, or fromValue plus the index of a value
	uids       []int64
	values     unsafe.Pointer // C memory with numbers that are the same in each run
	valueCount int            // number of values
	scratch    int64          // bytes of our own at the beginning of the workspace
}

// Pointers of a run that are not operands: the scratch memory at the beginning of the workspace and, from
// fromValue on, the values.
const (
	fromScratch = attentionOperands
	fromValue   = fromScratch + 1
)

// oldest is the first version of cuDNN whose attention is used. ragged is the first for sequences that are
// not multiples of 128. Masks of minus infinity work since 9.10, and reductions can be made deterministic
// since 9.11. Before 9.16, cuDNN's own front end masks the end of such sequences.
const (
	oldest = 91100
	ragged = 91600
)

// errNoAttention is the error of attention that is not supported, without asking cuDNN.
var errNoAttention = errors.New("cuDNN's attention does not support it")

// Prepare chooses the first engine that cuDNN's heuristic suggests, that runs on this device, is
// deterministic, and works with the given bytes of workspace. If there is none, the error is not an
// [*Error], or is one with code 3000 to 3999.
func (a *Attentions) Prepare(x Attention, grad bool, workspace int64) (*AttentionPlan, error) {
	if x.Batch < 1 || x.Seq < 1 || x.KSeq < 1 || x.KHeads < 1 || x.Group < 1 || x.Dim < 1 ||
		x.Window > 0 && !x.Causal || x.Type != ValueFloat16 && x.Type != ValueBFloat16 {
		panic(fmt.Sprintf("cuda: invalid attention %+v", x))
	}
	if a.dnn.number < oldest || a.dnn.number < ragged && x.KSeq%128 != 0 || x.Dim%8 != 0 || x.Dim > 128 {
		return nil, fmt.Errorf("%w: version %s, %+v", errNoAttention, a.dnn.Version, x)
	}
	p := &AttentionPlan{Attention: x, Grad: grad, attentions: a, g: &descriptorBuilder{}}
	if grad {
		p.describeGrad()
	} else {
		p.describe()
	}
	p.choose(workspace)
	if p.g.err != nil {
		return nil, errors.Join(fmt.Errorf("attention %+v: %w", x, p.g.err), p.Close())
	}
	return p, nil
}

// Close releases the plan's resources.
func (p *AttentionPlan) Close() error {
	C.free(p.values)
	p.values = nil
	return p.g.close()
}

// constant returns a tensor with a number that is the same in each run.
func (p *AttentionPlan) constant(v float64) *tensor {
	const limit = 8
	if p.values == nil {
		p.values = C.calloc(limit, 4)
	}
	unsafe.Slice((*float32)(p.values), limit)[p.valueCount] = float32(v)
	t := p.g.value()
	p.uids, p.bind = append(p.uids, t.uid), append(p.bind, fromValue+p.valueCount)
	p.valueCount++
	return t
}

// operand returns a tensor [batch, heads, rows, columns] whose heads are stored within rows or, if
// transposed, the tensor [batch, heads, columns, rows] of the same memory.
func (p *AttentionPlan) operand(which, seq, heads, dim int, kind C.int, turned bool) *tensor {
	b, s, h, d := int64(p.Batch), int64(seq), int64(heads), int64(dim)
	ld := h * d
	if p.Pitch > 0 && hasPitch[which] {
		ld = int64(p.Pitch)
	}
	dims, strides := [4]int64{b, h, s, d}, [4]int64{s * ld, d, ld, 1}
	if turned {
		dims, strides = [4]int64{b, h, d, s}, [4]int64{s * ld, d, 1, ld}
	}
	t := p.g.tensor(kind, dims, strides)
	p.uids, p.bind = append(p.uids, t.uid), append(p.bind, which)
	return t
}

// queries and keys return operands of the type of q, and lse one of f32.
func (p *AttentionPlan) queries(which int) *tensor {
	return p.operand(which, p.Seq, p.KHeads*p.Group, p.Dim, p.kind(), false)
}
func (p *AttentionPlan) keys(which int, turned bool) *tensor {
	return p.operand(which, p.KSeq, p.KHeads, p.Dim, p.kind(), turned)
}
func (p *AttentionPlan) lse() *tensor {
	return p.operand(AttentionL, p.Seq, p.KHeads*p.Group, 1, C.planc_dnn_f32, false)
}

func (p *AttentionPlan) kind() C.int {
	if p.Type == ValueFloat16 {
		return C.planc_dnn_f16
	}
	return C.planc_dnn_bf16
}

// scores and rows return the dims of a number for each query and key, and for each query.
func (p *AttentionPlan) scores() [4]int64 {
	return [4]int64{int64(p.Batch), int64(p.KHeads * p.Group), int64(p.Seq), int64(p.KSeq)}
}
func (p *AttentionPlan) rows() [4]int64 {
	s := p.scores()
	s[3] = 1
	return s
}

// masked replaces the scores of keys that a query does not see by minus infinity.
func (p *AttentionPlan) masked(x *tensor) *tensor {
	if !p.Causal {
		return x
	}
	x = p.where(x, C.planc_dnn_ge, 2, nil, 3)
	if p.Window > 0 { // j + Window > i
		x = p.where(x, C.planc_dnn_gt, 3, p.constant(float64(p.Window)), 2)
	}
	return x
}

// where keeps x if its index along one axis, plus more unless that is nil, compares to the index along
// another. Otherwise it is minus infinity.
func (p *AttentionPlan) where(x *tensor, compare C.int, axis int64, more *tensor, other int64) *tensor {
	g, dims := p.g, p.scores()
	i := g.along(pointwiseOp{C.planc_dnn_index, axis, C.planc_dnn_f32}, g.within(C.planc_dnn_i32, dims), x, nil, nil)
	j := g.along(pointwiseOp{C.planc_dnn_index, other, C.planc_dnn_f32}, g.within(C.planc_dnn_i32, dims), x, nil, nil)
	if more != nil {
		i = g.pointwise(C.planc_dnn_add, g.within(C.planc_dnn_f32, dims), i, more, nil)
	}
	sees := g.along(pointwiseOp{compare, -1, C.planc_dnn_bool}, g.within(C.planc_dnn_bool, dims), i, j, nil)
	return g.pointwise(C.planc_dnn_select, g.within(C.planc_dnn_f32, dims), x, p.constant(math.Inf(-1)), sees)
}

// describe builds attention in the form that cuDNN recognizes: two matmuls with the parts of softmax
// between them.
func (p *AttentionPlan) describe() {
	g, s, r, f32 := p.g, p.scores(), p.rows(), C.int(C.planc_dnn_f32)
	q, k, v, o, lse := p.queries(AttentionQ), p.keys(AttentionK, true), p.keys(AttentionV, false),
		p.queries(AttentionO), p.lse()
	x := g.matmul(g.within(f32, s), q, k)
	x = p.masked(g.pointwise(C.planc_dnn_mul, g.within(f32, s), x, p.constant(p.Scale), nil))
	top := g.reduction(C.planc_dnn_max, g.within(f32, r), x)
	x = g.pointwise(C.planc_dnn_exp, g.within(f32, s), g.pointwise(C.planc_dnn_sub, g.within(f32, s), x, top,
		nil), nil, nil)
	sum := g.reduction(C.planc_dnn_sum, g.within(f32, r), x)
	g.pointwise(C.planc_dnn_add, lse, top, g.pointwise(C.planc_dnn_log, g.within(f32, r), sum, nil, nil), nil)
	g.matmul(o, g.pointwise(C.planc_dnn_div, g.within(p.kind(), s), x, sum, nil), v)
}

// describeGrad builds the gradient. It computes dq with a matmul rather than as a sum of parts in arbitrary
// order. cuDNN keeps the gradient of the scores for this.
func (p *AttentionPlan) describeGrad() {
	g, s, f32 := p.g, p.scores(), C.int(C.planc_dnn_f32)
	q, k, v, o, do, lse := p.queries(AttentionQ), p.keys(AttentionK, true), p.keys(AttentionV, true),
		p.queries(AttentionO), p.queries(AttentionDO), p.lse()
	dq, dk, dv := p.queries(AttentionDQ), p.keys(AttentionDK, false), p.keys(AttentionDV, false)
	dot := p.dots(do, o)

	x := g.matmul(g.within(f32, s), q, k)
	x = g.pointwise(C.planc_dnn_mul, g.within(f32, s), x, p.constant(p.Scale), nil)
	x = p.masked(g.pointwise(C.planc_dnn_sub, g.within(f32, s), x, lse, nil))
	weights := g.pointwise(C.planc_dnn_exp, g.within(f32, s), x, nil, nil)
	p.toKeys(dv, weights, do)

	x = g.matmul(g.within(f32, s), do, v)
	x = g.pointwise(C.planc_dnn_sub, g.within(f32, s), x, dot, nil)
	x = g.pointwise(C.planc_dnn_mul, g.within(f32, s), x, weights, nil)
	x = g.pointwise(C.planc_dnn_mul, g.within(f32, s), x, p.constant(p.Scale), nil)
	p.toKeys(dk, x, q)
	g.matmul(dq, x, g.transposed(p.kind(), k))
}

// dots computes the sum of do times o of each query, into memory at the beginning of the workspace.
func (p *AttentionPlan) dots(do, o *tensor) *tensor {
	g, r := p.g, p.rows()
	x := g.tensor(C.planc_dnn_f32, do.dims, [4]int64{do.strides[0], int64(p.Seq * p.Dim), do.strides[2], 1},
		C.planc_dnn_tensor_virtual)
	x = g.reduction(C.planc_dnn_sum, g.within(C.planc_dnn_f32, r), g.pointwise(C.planc_dnn_mul, x, do, o, nil))
	dot := g.tensor(C.planc_dnn_f32, r, packed(r))
	p.uids, p.bind = append(p.uids, dot.uid), append(p.bind, fromScratch)
	p.scratch = (r[0]*r[1]*r[2]*4 + 255) &^ 255
	// stands for the factor of dropout in cuDNN's pattern
	return g.pointwise(C.planc_dnn_mul, dot, x, p.constant(1), nil)
}

// toKeys computes the gradient of keys or values: the transposed scores times the queries' operand, summed
// over the query heads that share a head of keys.
func (p *AttentionPlan) toKeys(to, scores, source *tensor) {
	g, s := p.g, p.scores()
	y := g.tensor(p.kind(), [4]int64{s[0], s[1], s[3], s[2]}, [4]int64{s[1] * s[2] * s[3], s[2] * s[3], 1, s[3]},
		C.planc_dnn_tensor_virtual)
	op := g.create(C.planc_dnn_op_reshape)
	g.setDescriptors(op, C.planc_dnn_op_reshape_x, scores.descriptor)
	g.setDescriptors(op, C.planc_dnn_op_reshape_y, y.descriptor)
	g.addOp(op)
	if p.Group == 1 {
		g.matmul(to, y, source)
		return
	}
	g.reduction(C.planc_dnn_sum, to, g.matmul(g.within(p.kind(), [4]int64{s[0], s[1], s[3], int64(p.Dim)}), y, source))
}
