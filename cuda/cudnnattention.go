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

// Attention is a kind of attention over q [Batch, Seq, KHeads*Group, Dim], k and v [Batch, KSeq, KHeads, Dim]:
//
//	o_i = sum over j of exp(s_ij - lse_i) v_j, s_ij = Scale * q_i·k_j, lse_i = log of the sum over j of exp(s_ij)
//
// Query head h reads the keys' head h/Group. Query i sees all keys or, if Causal, those with j <= i, with a Window
// those with j > i-Window. lse is [Batch, Seq, KHeads*Group] in f32.
type Attention struct {
	Batch, Seq, KSeq, KHeads, Group, Dim int
	Scale                                float64
	Causal                               bool
	Window                               int   // 0: none
	Type                                 Value // of q, k, v, o and their gradients: ValueFloat16 or ValueBFloat16
}

// Places of the operands that [Stream.Attend] takes, of attention and of its gradient.
const (
	AttentionO  = iota // out; the gradient's in
	AttentionL         // lse: likewise
	AttentionQ         // q, k, v: in
	AttentionK         //
	AttentionV         //
	AttentionDO        // in
	AttentionDQ        // dq, dk, dv: out
	AttentionDK        //
	AttentionDV        //
	attentionOperands
)

// AttentionOperands are where the operands lie, each a multiple of [Alignment]; those of the gradient alone are not
// looked at by attention.
type AttentionOperands [attentionOperands]Pointer

// AttentionPlan is attention, or its gradient, for which a way of computing was chosen. It can run any number of times.
type AttentionPlan struct {
	Attention
	Workspace int64 // bytes that a run takes
	Grad      bool

	of      *Attentions
	g       *graph
	plan    *descriptor
	bind    []int // of each pointer of a run the operand, or fromValue and what follows
	uids    []int64
	values  unsafe.Pointer // of C: numbers that are the same in each run
	counted int            // of them
	scratch int64          // bytes of the workspace before the library's own
}

// What a pointer of a run is that is no operand: scratch at the workspace's begin, or, from fromValue on, one of the
// values.
const (
	fromScratch = attentionOperands
	fromValue   = fromScratch + 1
)

// oldest and ragged are versions of cuDNN: from which its attention is used, and from which sequences need not be
// multiples of 128. Masks are of minus infinity since 9.10, and reductions can be told to be deterministic since 9.11;
// before 9.16 cuDNN's own front end masks what is behind such a sequence.
const (
	oldest = 91100
	ragged = 91600
)

// errNoAttention is the error of attention that is not even asked for.
var errNoAttention = errors.New("cuDNN's attention does not do it")

// Prepare chooses, among the ways that cuDNN's heuristic names, the first that it can run here, gives the same bits in
// each run, and gets by with so many bytes of workspace. There may be none: the error then is no [*Error], or one of
// code 3000 to 3999.
func (a *Attentions) Prepare(x Attention, grad bool, workspace int64) (*AttentionPlan, error) {
	if x.Batch < 1 || x.Seq < 1 || x.KSeq < 1 || x.KHeads < 1 || x.Group < 1 || x.Dim < 1 ||
		x.Window > 0 && !x.Causal || x.Type != ValueFloat16 && x.Type != ValueBFloat16 {
		panic(fmt.Sprintf("cuda: attention of %+v", x))
	}
	if a.dnn.number < oldest || a.dnn.number < ragged && x.KSeq%128 != 0 || x.Dim%8 != 0 || x.Dim > 128 {
		return nil, fmt.Errorf("%w: version %s, %+v", errNoAttention, a.dnn.Version, x)
	}
	p := &AttentionPlan{Attention: x, Grad: grad, of: a, g: &graph{}}
	if grad {
		p.describeGrad()
	} else {
		p.describe()
	}
	p.choose(workspace)
	if p.g.err != nil {
		return nil, errors.Join(fmt.Errorf("attention of %+v: %w", x, p.g.err), p.Close())
	}
	return p, nil
}

// Close gives back what the plan has.
func (p *AttentionPlan) Close() error {
	C.free(p.values)
	p.values = nil
	return p.g.close()
}

// constant is a number of each run.
func (p *AttentionPlan) constant(v float64) *tensor {
	const most = 8
	if p.values == nil {
		p.values = C.calloc(most, 4)
	}
	unsafe.Slice((*float32)(p.values), most)[p.counted] = float32(v)
	t := p.g.value()
	p.uids, p.bind = append(p.uids, t.uid), append(p.bind, fromValue+p.counted)
	p.counted++
	return t
}

// operand is a tensor [batch, heads, rows, columns] of which heads lie within rows, or, if turned, [batch, heads,
// columns, rows] of the same.
func (p *AttentionPlan) operand(which, seq, heads, dim int, kind C.int, turned bool) *tensor {
	b, s, h, d := int64(p.Batch), int64(seq), int64(heads), int64(dim)
	dims, strides := [4]int64{b, h, s, d}, [4]int64{s * h * d, d, h * d, 1}
	if turned {
		dims, strides = [4]int64{b, h, d, s}, [4]int64{s * h * d, d, 1, h * d}
	}
	t := p.g.of(kind, dims, strides)
	p.uids, p.bind = append(p.uids, t.uid), append(p.bind, which)
	return t
}

// queries and keys are operands of the type of q, and lse that of f32.
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

// scores and rows are dims: of a number for each query and key, and for each query.
func (p *AttentionPlan) scores() [4]int64 {
	return [4]int64{int64(p.Batch), int64(p.KHeads * p.Group), int64(p.Seq), int64(p.KSeq)}
}
func (p *AttentionPlan) rows() [4]int64 {
	s := p.scores()
	s[3] = 1
	return s
}

// masked puts minus infinity where a query does not see a key.
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

// where keeps x where its place along one axis, with more added if that is not nil, compares to that along another.
func (p *AttentionPlan) where(x *tensor, compare C.int, axis int64, more *tensor, other int64) *tensor {
	g, dims := p.g, p.scores()
	i := g.along(C.planc_dnn_index, axis, C.planc_dnn_f32, g.within(C.planc_dnn_i32, dims), x, nil, nil)
	j := g.along(C.planc_dnn_index, other, C.planc_dnn_f32, g.within(C.planc_dnn_i32, dims), x, nil, nil)
	if more != nil {
		i = g.pointwise(C.planc_dnn_add, g.within(C.planc_dnn_f32, dims), i, more, nil)
	}
	sees := g.along(compare, -1, C.planc_dnn_bool, g.within(C.planc_dnn_bool, dims), i, j, nil)
	return g.pointwise(C.planc_dnn_select, g.within(C.planc_dnn_f32, dims), x, p.constant(math.Inf(-1)), sees)
}

// describe is attention as cuDNN knows it again: products, and between them softmax in its parts.
func (p *AttentionPlan) describe() {
	g, s, r, f32 := p.g, p.scores(), p.rows(), C.int(C.planc_dnn_f32)
	q, k, v, o, lse := p.queries(AttentionQ), p.keys(AttentionK, true), p.keys(AttentionV, false),
		p.queries(AttentionO), p.lse()
	x := g.product(g.within(f32, s), q, k)
	x = p.masked(g.pointwise(C.planc_dnn_mul, g.within(f32, s), x, p.constant(p.Scale), nil))
	top := g.reduction(C.planc_dnn_max, g.within(f32, r), x)
	x = g.pointwise(C.planc_dnn_exp, g.within(f32, s), g.pointwise(C.planc_dnn_sub, g.within(f32, s), x, top,
		nil), nil, nil)
	sum := g.reduction(C.planc_dnn_sum, g.within(f32, r), x)
	g.pointwise(C.planc_dnn_add, lse, top, g.pointwise(C.planc_dnn_log, g.within(f32, r), sum, nil, nil), nil)
	g.product(o, g.pointwise(C.planc_dnn_div, g.within(p.kind(), s), x, sum, nil), v)
}

// describeGrad is the gradient likewise, in which dq is a product and no sum of parts that come in any order: cuDNN
// keeps the gradient of the scores for it.
func (p *AttentionPlan) describeGrad() {
	g, s, f32 := p.g, p.scores(), C.int(C.planc_dnn_f32)
	q, k, v, o, do, lse := p.queries(AttentionQ), p.keys(AttentionK, true), p.keys(AttentionV, true),
		p.queries(AttentionO), p.queries(AttentionDO), p.lse()
	dq, dk, dv := p.queries(AttentionDQ), p.keys(AttentionDK, false), p.keys(AttentionDV, false)
	dot := p.dots(do, o)

	x := g.product(g.within(f32, s), q, k)
	x = g.pointwise(C.planc_dnn_mul, g.within(f32, s), x, p.constant(p.Scale), nil)
	x = p.masked(g.pointwise(C.planc_dnn_sub, g.within(f32, s), x, lse, nil))
	weights := g.pointwise(C.planc_dnn_exp, g.within(f32, s), x, nil, nil)
	p.toKeys(dv, weights, do)

	x = g.product(g.within(f32, s), do, v)
	x = g.pointwise(C.planc_dnn_sub, g.within(f32, s), x, dot, nil)
	x = g.pointwise(C.planc_dnn_mul, g.within(f32, s), x, weights, nil)
	x = g.pointwise(C.planc_dnn_mul, g.within(f32, s), x, p.constant(p.Scale), nil)
	p.toKeys(dk, x, q)
	g.product(dq, x, g.turned(p.kind(), k))
}

// dots is the sum of do times o of each query. It lies in memory, at the workspace's begin.
func (p *AttentionPlan) dots(do, o *tensor) *tensor {
	g, r := p.g, p.rows()
	x := g.of(C.planc_dnn_f32, do.dims, [4]int64{do.strides[0], int64(p.Seq * p.Dim), do.strides[2], 1},
		C.planc_dnn_tensor_virtual)
	x = g.reduction(C.planc_dnn_sum, g.within(C.planc_dnn_f32, r), g.pointwise(C.planc_dnn_mul, x, do, o, nil))
	dot := g.of(C.planc_dnn_f32, r, packed(r))
	p.uids, p.bind = append(p.uids, dot.uid), append(p.bind, fromScratch)
	p.scratch = (r[0]*r[1]*r[2]*4 + 255) &^ 255
	return g.pointwise(C.planc_dnn_mul, dot, x, p.constant(1), nil) // by what dropout would make of it
}

// toKeys is the gradient of keys or values: scores', turned, times what queries have, summed over the queries' heads
// that read one.
func (p *AttentionPlan) toKeys(to, scores, of *tensor) {
	g, s := p.g, p.scores()
	y := g.of(p.kind(), [4]int64{s[0], s[1], s[3], s[2]}, [4]int64{s[1] * s[2] * s[3], s[2] * s[3], 1, s[3]},
		C.planc_dnn_tensor_virtual)
	op := g.made(C.planc_dnn_op_reshape)
	g.links(op, C.planc_dnn_op_reshape_x, scores.descriptor)
	g.links(op, C.planc_dnn_op_reshape_y, y.descriptor)
	g.does(op)
	if p.Group == 1 {
		g.product(to, y, of)
		return
	}
	g.reduction(C.planc_dnn_sum, to, g.product(g.within(p.kind(), [4]int64{s[0], s[1], s[3], int64(p.Dim)}), y, of))
}
