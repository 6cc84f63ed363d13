//go:build cuda && linux

package cuda

/*
#include <stdlib.h>
#include "cudnn.h"
*/
import "C"

import (
	"errors"
	"unsafe"
)

// descriptor is a descriptor of cuDNN's backend.
type descriptor struct{ d C.cudnnBackendDescriptor_t }

// descriptorBuilder creates descriptors. After the first failing call it creates none, and err holds the error.
type descriptorBuilder struct {
	all []*descriptor
	ops []*descriptor
	uid int64
	err error
}

// create returns a new descriptor.
func (g *descriptorBuilder) create(kind C.cudnnBackendDescriptorType_t) *descriptor {
	x := &descriptor{}
	if g.err == nil {
		var d C.cudnnBackendDescriptor_t
		g.err = dnnError(C.planc_cudnnBackendCreateDescriptor(kind, &d), "cudnnBackendCreateDescriptor",
			"kind %d", int(kind))
		x.d = d
		if g.err == nil {
			g.all = append(g.all, x)
		}
	}
	return x
}

// set sets an attribute to n consecutive values.
func (g *descriptorBuilder) set(x *descriptor, attr C.cudnnBackendAttributeName_t,
	kind C.cudnnBackendAttributeType_t, n int, values unsafe.Pointer) {
	if g.err == nil {
		g.err = dnnError(C.planc_cudnnBackendSetAttribute(x.d, attr, kind, C.int64_t(n), values),
			"cudnnBackendSetAttribute", "attribute %d", int(attr))
	}
}

// setEnum sets an attribute whose type is an enum in C.
func (g *descriptorBuilder) setEnum(x *descriptor, attr C.cudnnBackendAttributeName_t,
	kind C.cudnnBackendAttributeType_t, v C.int) {
	g.set(x, attr, kind, 1, unsafe.Pointer(&v))
}

// setBool sets an attribute to true.
func (g *descriptorBuilder) setBool(x *descriptor, attr C.cudnnBackendAttributeName_t) {
	yes := C.char(1)
	g.set(x, attr, C.planc_dnn_of_flag, 1, unsafe.Pointer(&yes))
}

// setInt64s sets an attribute to integers.
func (g *descriptorBuilder) setInt64s(x *descriptor, attr C.cudnnBackendAttributeName_t, v ...int64) {
	g.set(x, attr, C.planc_dnn_of_int64, len(v), unsafe.Pointer(&v[0]))
}

// setDescriptors sets an attribute to other descriptors.
func (g *descriptorBuilder) setDescriptors(x *descriptor, attr C.cudnnBackendAttributeName_t, to ...*descriptor) {
	list := make([]C.cudnnBackendDescriptor_t, len(to))
	for i, y := range to {
		list[i] = y.d
	}
	g.set(x, attr, C.planc_dnn_of_descriptor, len(list), unsafe.Pointer(&list[0]))
}

// setHandle sets an attribute to a handle of cuDNN.
func (g *descriptorBuilder) setHandle(x *descriptor, attr C.cudnnBackendAttributeName_t, h C.cudnnHandle_t) {
	g.set(x, attr, C.planc_dnn_of_handle, 1, unsafe.Pointer(&h))
}

// finalize finalizes a descriptor.
func (g *descriptorBuilder) finalize(x *descriptor) *descriptor {
	if g.err == nil {
		g.err = dnnError(C.planc_cudnnBackendFinalize(x.d), "cudnnBackendFinalize", "")
	}
	return x
}

// getAttribute reads up to n values of an attribute into to, and returns how many there are.
func (g *descriptorBuilder) getAttribute(x *descriptor, attr C.cudnnBackendAttributeName_t,
	kind C.cudnnBackendAttributeType_t, n int, to unsafe.Pointer) int {
	var got C.int64_t
	if g.err == nil {
		g.err = dnnError(C.planc_cudnnBackendGetAttribute(x.d, attr, kind, C.int64_t(n), &got, to),
			"cudnnBackendGetAttribute", "attribute %d", int(attr))
	}
	return int(got)
}

// getDescriptors reads the attribute's descriptors into existing ones, and returns these.
func (g *descriptorBuilder) getDescriptors(x *descriptor, attr C.cudnnBackendAttributeName_t,
	into []*descriptor) []*descriptor {
	if len(into) == 0 || g.err != nil {
		return nil
	}
	list := make([]C.cudnnBackendDescriptor_t, len(into))
	for i, y := range into {
		list[i] = y.d
	}
	n := g.getAttribute(x, attr, C.planc_dnn_of_descriptor, len(list), unsafe.Pointer(&list[0]))
	return into[:min(len(into), n)]
}

// close destroys all descriptors.
func (g *descriptorBuilder) close() (err error) {
	for i := len(g.all) - 1; i >= 0; i-- {
		err = errors.Join(err, dnnError(C.planc_cudnnBackendDestroyDescriptor(g.all[i].d),
			"cudnnBackendDestroyDescriptor", ""))
	}
	g.all = nil
	return err
}
