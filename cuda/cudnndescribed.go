//go:build cuda && linux

package cuda

/*
#include "cudnn.h"
*/
import "C"

import "unsafe"

// described is for asking what cuDNN would do on a device that is not there, in the words that cuDNN has for one.
func (d *DNN) described(json string) (*Attentions, *graph, error) {
	g := &graph{}
	x, text := g.made(C.planc_dnn_device), append([]byte(json), 0)
	g.set(x, C.planc_dnn_device_json, C.planc_dnn_of_char, len(json), unsafe.Pointer(&text[0]))
	g.finish(x)
	return &Attentions{dnn: d, device: x}, g, g.err
}
