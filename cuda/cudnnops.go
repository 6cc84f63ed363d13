//go:build cuda && linux

package cuda

/*
#include "cudnn.h"
*/
import "C"

// tensor is an operand of operations: memory, a number that each call passes, or an intermediate result
// within the graph.
type tensor struct {
	*descriptor
	uid           int64
	dims, strides [4]int64
}

// packed returns the strides of a contiguous tensor.
func packed(dims [4]int64) [4]int64 {
	return [4]int64{dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}
}

// tensor creates a tensor. flags are boolean attributes to set.
func (g *descriptorBuilder) tensor(kind C.int, dims, strides [4]int64, flags ...C.cudnnBackendAttributeName_t) *tensor {
	g.uid++
	t := &tensor{g.create(C.planc_dnn_tensor), g.uid, dims, strides}
	g.setEnum(t.descriptor, C.planc_dnn_tensor_type, C.planc_dnn_of_type, kind)
	g.setInt64s(t.descriptor, C.planc_dnn_tensor_dims, dims[:]...)
	g.setInt64s(t.descriptor, C.planc_dnn_tensor_strides, strides[:]...)
	g.setInt64s(t.descriptor, C.planc_dnn_tensor_uid, t.uid)
	g.setInt64s(t.descriptor, C.planc_dnn_tensor_alignment, Alignment)
	for _, f := range flags {
		g.setBool(t.descriptor, f)
	}
	g.finalize(t.descriptor)
	return t
}

// within creates a tensor that is not written to memory.
func (g *descriptorBuilder) within(kind C.int, dims [4]int64) *tensor {
	return g.tensor(kind, dims, packed(dims), C.planc_dnn_tensor_virtual)
}

// value creates an f32 number that each call passes.
func (g *descriptorBuilder) value() *tensor {
	return g.tensor(C.planc_dnn_f32, [4]int64{1, 1, 1, 1}, [4]int64{1, 1, 1, 1}, C.planc_dnn_tensor_value)
}

// addOp adds an operation to the graph.
func (g *descriptorBuilder) addOp(op *descriptor) { g.ops = append(g.ops, g.finalize(op)) }

// pointwise adds y = f(x, b, t). b and t may be nil. They are broadcast along dims in which their size is
// 1.
func (g *descriptorBuilder) pointwise(f C.int, y, x, b, t *tensor) *tensor {
	return g.along(pointwiseOp{f, -1, C.planc_dnn_f32}, y, x, b, t)
}

// pointwiseOp is a pointwise function, the axis whose indices it takes or -1, and the type in which it computes.
type pointwiseOp struct {
	function C.int
	axis     int64
	in       C.int
}

// along adds a pointwise operation of a kind.
func (g *descriptorBuilder) along(kind pointwiseOp, y, x, b, t *tensor) *tensor {
	p := g.create(C.planc_dnn_pointwise)
	g.setEnum(p, C.planc_dnn_pointwise_mode, C.planc_dnn_of_pointwise, kind.function)
	g.setEnum(p, C.planc_dnn_pointwise_precision, C.planc_dnn_of_type, kind.in)
	if kind.axis >= 0 {
		g.setInt64s(p, C.planc_dnn_pointwise_axis, kind.axis)
	}
	g.finalize(p)
	op := g.create(C.planc_dnn_op_pointwise)
	g.setDescriptors(op, C.planc_dnn_op_pointwise_desc, p)
	g.setDescriptors(op, C.planc_dnn_op_pointwise_x, x.descriptor)
	g.setDescriptors(op, C.planc_dnn_op_pointwise_y, y.descriptor)
	if b != nil {
		g.setDescriptors(op, C.planc_dnn_op_pointwise_b, b.descriptor)
	}
	if t != nil {
		g.setDescriptors(op, C.planc_dnn_op_pointwise_t, t.descriptor)
	}
	g.addOp(op)
	return y
}

// matmul adds c[.., i, j] = sum over k of a[.., i, k] b[.., k, j], accumulated in f32.
func (g *descriptorBuilder) matmul(c, a, b *tensor) *tensor {
	m := g.create(C.planc_dnn_matmul)
	g.setEnum(m, C.planc_dnn_matmul_precision, C.planc_dnn_of_type, C.planc_dnn_f32)
	g.finalize(m)
	op := g.create(C.planc_dnn_op_matmul)
	g.setDescriptors(op, C.planc_dnn_op_matmul_a, a.descriptor)
	g.setDescriptors(op, C.planc_dnn_op_matmul_b, b.descriptor)
	g.setDescriptors(op, C.planc_dnn_op_matmul_c, c.descriptor)
	g.setDescriptors(op, C.planc_dnn_op_matmul_desc, m)
	g.addOp(op)
	return c
}

// reduction adds y, the deterministic sum or maximum of x along the dims in which y is smaller.
func (g *descriptorBuilder) reduction(kind C.int, y, x *tensor) *tensor {
	m := g.create(C.planc_dnn_reduction)
	g.setEnum(m, C.planc_dnn_reduction_precision, C.planc_dnn_of_type, C.planc_dnn_f32)
	g.setEnum(m, C.planc_dnn_reduction_kind, C.planc_dnn_of_reduction, kind)
	g.setBool(m, C.planc_dnn_reduction_deterministic)
	g.finalize(m)
	op := g.create(C.planc_dnn_op_reduction)
	g.setDescriptors(op, C.planc_dnn_op_reduction_desc, m)
	g.setDescriptors(op, C.planc_dnn_op_reduction_x, x.descriptor)
	g.setDescriptors(op, C.planc_dnn_op_reduction_y, y.descriptor)
	g.addOp(op)
	return y
}

// transposed returns x with its last two dims swapped. No bytes move.
func (g *descriptorBuilder) transposed(kind C.int, x *tensor) *tensor {
	d, s := x.dims, x.strides
	y := g.tensor(kind, [4]int64{d[0], d[1], d[3], d[2]}, [4]int64{s[0], s[1], s[3], s[2]}, C.planc_dnn_tensor_virtual)
	op := g.create(C.planc_dnn_op_reshape)
	g.setDescriptors(op, C.planc_dnn_op_reshape_x, x.descriptor)
	g.setDescriptors(op, C.planc_dnn_op_reshape_y, y.descriptor)
	g.addOp(op)
	return y
}
