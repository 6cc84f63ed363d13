//go:build cuda && linux

package cuda

/*
#include "cudnn.h"
*/
import "C"

import "unsafe"

// described returns Attentions for a device that is only described, in cuDNN's JSON, and need not exist.
func (d *DNN) described(json string) (*Attentions, *descriptorBuilder, error) {
	g := &descriptorBuilder{}
	x, text := g.create(C.planc_dnn_device), append([]byte(json), 0)
	g.set(x, C.planc_dnn_device_json, C.planc_dnn_of_char, len(json), unsafe.Pointer(&text[0]))
	g.finalize(x)
	return &Attentions{dnn: d, device: x}, g, g.err
}
