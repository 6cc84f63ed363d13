//go:build cuda && linux

package cuda

/*
#include "cudnn.h"
*/
import "C"

// tensor is an operand of operations: memory, a number that each call brings, or what stays within the graph.
type tensor struct {
	*descriptor
	uid           int64
	dims, strides [4]int64
}

// packed are the strides of a tensor whose dims lie in order.
func packed(dims [4]int64) [4]int64 {
	return [4]int64{dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}
}

// of is a tensor; flags are attributes that are set.
func (g *graph) of(kind C.int, dims, strides [4]int64, flags ...C.cudnnBackendAttributeName_t) *tensor {
	g.uid++
	t := &tensor{g.made(C.planc_dnn_tensor), g.uid, dims, strides}
	g.number(t.descriptor, C.planc_dnn_tensor_type, C.planc_dnn_of_type, kind)
	g.longs(t.descriptor, C.planc_dnn_tensor_dims, dims[:]...)
	g.longs(t.descriptor, C.planc_dnn_tensor_strides, strides[:]...)
	g.longs(t.descriptor, C.planc_dnn_tensor_uid, t.uid)
	g.longs(t.descriptor, C.planc_dnn_tensor_alignment, Alignment)
	for _, f := range flags {
		g.flag(t.descriptor, f)
	}
	g.finish(t.descriptor)
	return t
}

// within is a tensor that is not written to memory.
func (g *graph) within(kind C.int, dims [4]int64) *tensor {
	return g.of(kind, dims, packed(dims), C.planc_dnn_tensor_virtual)
}

// value is a number in f32 that each call brings.
func (g *graph) value() *tensor {
	return g.of(C.planc_dnn_f32, [4]int64{1, 1, 1, 1}, [4]int64{1, 1, 1, 1}, C.planc_dnn_tensor_value)
}

// does adds an operation to the graph.
func (g *graph) does(op *descriptor) { g.ops = append(g.ops, g.finish(op)) }

// pointwise is y = f(x, b, t), of which b and t may be nil. Where b or t is 1 in a dim, it is the same along it.
func (g *graph) pointwise(f C.int, y, x, b, t *tensor) *tensor {
	return g.along(f, -1, C.planc_dnn_f32, y, x, b, t)
}

// along is pointwise with an axis, if that is not negative, in numbers of a type.
func (g *graph) along(f C.int, axis int64, in C.int, y, x, b, t *tensor) *tensor {
	p := g.made(C.planc_dnn_pointwise)
	g.number(p, C.planc_dnn_pointwise_mode, C.planc_dnn_of_pointwise, f)
	g.number(p, C.planc_dnn_pointwise_precision, C.planc_dnn_of_type, in)
	if axis >= 0 {
		g.longs(p, C.planc_dnn_pointwise_axis, axis)
	}
	g.finish(p)
	op := g.made(C.planc_dnn_op_pointwise)
	g.links(op, C.planc_dnn_op_pointwise_desc, p)
	g.links(op, C.planc_dnn_op_pointwise_x, x.descriptor)
	g.links(op, C.planc_dnn_op_pointwise_y, y.descriptor)
	if b != nil {
		g.links(op, C.planc_dnn_op_pointwise_b, b.descriptor)
	}
	if t != nil {
		g.links(op, C.planc_dnn_op_pointwise_t, t.descriptor)
	}
	g.does(op)
	return y
}

// product is c[.., i, j] = sum over k of a[.., i, k] b[.., k, j], in f32.
func (g *graph) product(c, a, b *tensor) *tensor {
	m := g.made(C.planc_dnn_matmul)
	g.number(m, C.planc_dnn_matmul_precision, C.planc_dnn_of_type, C.planc_dnn_f32)
	g.finish(m)
	op := g.made(C.planc_dnn_op_matmul)
	g.links(op, C.planc_dnn_op_matmul_a, a.descriptor)
	g.links(op, C.planc_dnn_op_matmul_b, b.descriptor)
	g.links(op, C.planc_dnn_op_matmul_c, c.descriptor)
	g.links(op, C.planc_dnn_op_matmul_desc, m)
	g.does(op)
	return c
}

// reduction is y, the sum or the largest of x along the dims in which y is shorter; it is the same in each run.
func (g *graph) reduction(kind C.int, y, x *tensor) *tensor {
	m := g.made(C.planc_dnn_reduction)
	g.number(m, C.planc_dnn_reduction_precision, C.planc_dnn_of_type, C.planc_dnn_f32)
	g.number(m, C.planc_dnn_reduction_kind, C.planc_dnn_of_reduction, kind)
	g.flag(m, C.planc_dnn_reduction_deterministic)
	g.finish(m)
	op := g.made(C.planc_dnn_op_reduction)
	g.links(op, C.planc_dnn_op_reduction_desc, m)
	g.links(op, C.planc_dnn_op_reduction_x, x.descriptor)
	g.links(op, C.planc_dnn_op_reduction_y, y.descriptor)
	g.does(op)
	return y
}

// turned is x with its last two dims swapped: no bytes move.
func (g *graph) turned(kind C.int, x *tensor) *tensor {
	d, s := x.dims, x.strides
	y := g.of(kind, [4]int64{d[0], d[1], d[3], d[2]}, [4]int64{s[0], s[1], s[3], s[2]}, C.planc_dnn_tensor_virtual)
	op := g.made(C.planc_dnn_op_reshape)
	g.links(op, C.planc_dnn_op_reshape_x, x.descriptor)
	g.links(op, C.planc_dnn_op_reshape_y, y.descriptor)
	g.does(op)
	return y
}
