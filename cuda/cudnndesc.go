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

// graph creates descriptors. After the first failing call it creates none, and err holds the error.
type graph struct {
	all []*descriptor
	ops []*descriptor
	uid int64
	err error
}

// create returns a new descriptor.
func (g *graph) create(kind C.cudnnBackendDescriptorType_t) *descriptor {
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
func (g *graph) set(x *descriptor, what C.cudnnBackendAttributeName_t, kind C.cudnnBackendAttributeType_t, n int,
	values unsafe.Pointer) {
	if g.err == nil {
		g.err = dnnError(C.planc_cudnnBackendSetAttribute(x.d, what, kind, C.int64_t(n), values),
			"cudnnBackendSetAttribute", "attribute %d", int(what))
	}
}

// number sets an attribute whose type is an enum in C.
func (g *graph) number(x *descriptor, what C.cudnnBackendAttributeName_t, kind C.cudnnBackendAttributeType_t, v C.int) {
	g.set(x, what, kind, 1, unsafe.Pointer(&v))
}

func (g *graph) flag(x *descriptor, what C.cudnnBackendAttributeName_t) {
	yes := C.char(1)
	g.set(x, what, C.planc_dnn_of_flag, 1, unsafe.Pointer(&yes))
}

func (g *graph) longs(x *descriptor, what C.cudnnBackendAttributeName_t, v ...int64) {
	g.set(x, what, C.planc_dnn_of_int64, len(v), unsafe.Pointer(&v[0]))
}

// links sets an attribute to other descriptors.
func (g *graph) links(x *descriptor, what C.cudnnBackendAttributeName_t, to ...*descriptor) {
	list := make([]C.cudnnBackendDescriptor_t, len(to))
	for i, y := range to {
		list[i] = y.d
	}
	g.set(x, what, C.planc_dnn_of_descriptor, len(list), unsafe.Pointer(&list[0]))
}

func (g *graph) handle(x *descriptor, what C.cudnnBackendAttributeName_t, h C.cudnnHandle_t) {
	g.set(x, what, C.planc_dnn_of_handle, 1, unsafe.Pointer(&h))
}

// finish finalizes a descriptor.
func (g *graph) finish(x *descriptor) *descriptor {
	if g.err == nil {
		g.err = dnnError(C.planc_cudnnBackendFinalize(x.d), "cudnnBackendFinalize", "")
	}
	return x
}

// numbers reads up to n values of an attribute into to, and returns how many there are.
func (g *graph) numbers(x *descriptor, what C.cudnnBackendAttributeName_t, kind C.cudnnBackendAttributeType_t, n int,
	to unsafe.Pointer) int {
	var got C.int64_t
	if g.err == nil {
		g.err = dnnError(C.planc_cudnnBackendGetAttribute(x.d, what, kind, C.int64_t(n), &got, to),
			"cudnnBackendGetAttribute", "attribute %d", int(what))
	}
	return int(got)
}

// filled reads the attribute's descriptors into existing ones, and returns these.
func (g *graph) filled(x *descriptor, what C.cudnnBackendAttributeName_t, into []*descriptor) []*descriptor {
	if len(into) == 0 || g.err != nil {
		return nil
	}
	list := make([]C.cudnnBackendDescriptor_t, len(into))
	for i, y := range into {
		list[i] = y.d
	}
	return into[:min(len(into), g.numbers(x, what, C.planc_dnn_of_descriptor, len(list), unsafe.Pointer(&list[0])))]
}

// close destroys all descriptors.
func (g *graph) close() (err error) {
	for i := len(g.all) - 1; i >= 0; i-- {
		err = errors.Join(err, dnnError(C.planc_cudnnBackendDestroyDescriptor(g.all[i].d),
			"cudnnBackendDestroyDescriptor", ""))
	}
	g.all = nil
	return err
}
