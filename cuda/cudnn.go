//go:build cuda && linux

package cuda

/*
#include "cudnn.h"
#include "open.h"

// Calls whose types cgo cannot express.
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

// DNN is the open cuDNN library.
type DNN struct {
	Path    string
	Version string // such as 9.26.0
	number  int    // such as 92600
}

var openDNN = sync.OnceValues(func() (*DNN, error) { return loadDNN(nil) })

// OpenDNN opens cuDNN from the system's library path. It fails with a [*MissingError] or an [*OldError].
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

// dnnError returns the error of a call of cuDNN, and nil if the call succeeded.
func dnnError(r C.cudnnStatus_t, call, what string, args ...any) error {
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

// Attentions prepares attention on the device that was bound when it was created. Only one goroutine may
// use it.
type Attentions struct {
	dnn    *DNN
	h      C.cudnnHandle_t
	device *descriptor // replaces h in tests without a device
}

// NewAttentions creates Attentions for the bound device.
func (d *DNN) NewAttentions() (*Attentions, error) {
	a := &Attentions{dnn: d}
	var h C.cudnnHandle_t // cgo does not allow passing the address of a struct that holds Go pointers
	err := dnnError(C.planc_cudnnCreate(&h), "cudnnCreate", "")
	a.h = h
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Close releases the library's handle. All plans must be closed before.
func (a *Attentions) Close() error {
	return dnnError(C.planc_cudnnDestroy(a.h), "cudnnDestroy", "")
}
