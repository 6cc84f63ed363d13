//go:build cuda && linux

package cuda

/*
#include "cudnn.h"
#include "open.h"

// C's words for what Go has no type for.
static void planc_dnn_why(char *text, size_t size) {
	text[0] = 0;
	if (planc_dnn.cudnnGetLastErrorString) planc_cudnnGetLastErrorString(text, size);
}
*/
import "C"

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// DNN is cuDNN, open.
type DNN struct {
	Path    string
	Version string // 9.26.0
	number  int    // 92600
}

var openDNN = sync.OnceValues(func() (*DNN, error) { return loadDNN(nil) })

// OpenDNN opens cuDNN where the system finds it. It fails with a [*MissingError] or an [*OldError].
func OpenDNN() (*DNN, error) { return openDNN() }

func loadDNN(folders []string) (*DNN, error) {
	path, err := load(LibraryNamed("cuDNN"), folders, "cudnnGetVersion", func(l unsafe.Pointer) *C.char {
		return C.planc_bind_dnn(l)
	})
	if err != nil {
		return nil, err
	}
	v := int(C.planc_cudnnGetVersion())
	return &DNN{Path: path, Version: fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100), number: v}, nil
}

// rejected is the error of a call of cuDNN, nil if it succeeded.
func rejected(r C.cudnnStatus_t, call, what string, args ...any) error {
	if r == 0 {
		return nil
	}
	var why [512]C.char
	C.planc_dnn_why(&why[0], C.size_t(len(why)))
	e := &Error{Call: call, What: fmt.Sprintf(what, args...), Code: int(r),
		Name: C.GoString(C.planc_cudnnGetErrorString(r)), Text: strings.TrimSpace(C.GoString(&why[0]))}
	if e.Text == "" {
		e.Text = "cuDNN gives no reason"
	}
	return e
}

// Attentions computes attention on the device that was bound when it was made. It is of one goroutine.
type Attentions struct {
	dnn    *DNN
	h      C.cudnnHandle_t
	device *descriptor // in place of h where there is no device: tests
}

// NewAttentions begins on the bound device.
func (d *DNN) NewAttentions() (*Attentions, error) {
	a := &Attentions{dnn: d}
	var h C.cudnnHandle_t // C may not be given a place beside pointers of Go
	err := rejected(C.planc_cudnnCreate(&h), "cudnnCreate", "")
	a.h = h
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Close ends it, after its last plan is closed.
func (a *Attentions) Close() error {
	return rejected(C.planc_cudnnDestroy(a.h), "cudnnDestroy", "")
}
