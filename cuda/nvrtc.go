//go:build cuda && linux

package cuda

/*
#include <stdlib.h>
#include "nvrtc.h"
#include "open.h"

// C's words for what Go has no type for.
static nvrtcResult planc_nvrtc_create(nvrtcProgram *p, const char *source, const char *name, int n, char **texts, char **names) {
	return planc_nvrtcCreateProgram(p, source, name, n, (const char *const *)texts, (const char *const *)names);
}
static nvrtcResult planc_nvrtc_compile(nvrtcProgram p, int n, char **options) {
	return planc_nvrtcCompileProgram(p, n, (const char *const *)options);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// NVRTC is NVIDIA's compiler of CUDA C++ as a library, for programs that were built where there was no nvcc.
type NVRTC struct {
	Path    string
	Version string // 13.5
}

var openNVRTC = sync.OnceValues(func() (*NVRTC, error) { return loadNVRTC(nil) })

// OpenNVRTC opens NVRTC where the system finds it. It fails with a [*MissingError] or an [*OldError].
func OpenNVRTC() (*NVRTC, error) { return openNVRTC() }

func loadNVRTC(folders []string) (*NVRTC, error) {
	path, err := load(LibraryNamed("NVRTC"), folders, "nvrtcVersion", func(l unsafe.Pointer) *C.char {
		return C.planc_bind_nvrtc(l)
	})
	if err != nil {
		return nil, err
	}
	var major, minor C.int
	if err := unbuilt(C.planc_nvrtcVersion(&major, &minor), "nvrtcVersion"); err != nil {
		return nil, err
	}
	return &NVRTC{Path: path, Version: fmt.Sprintf("%d.%d", major, minor)}, nil
}

// unbuilt is the error of a call of NVRTC, nil if it succeeded.
func unbuilt(r C.nvrtcResult, call string) error {
	if r == C.planc_nvrtc_ok {
		return nil
	}
	return &Error{Call: call, Code: int(r), Name: "nvrtcResult", Text: C.GoString(C.planc_nvrtcGetErrorString(r))}
}

// SourceError reports CUDA C++ that does not compile.
type SourceError struct {
	Name string // of the source
	Log  string // the compiler's words
}

func (e *SourceError) Error() string { return fmt.Sprintf("%s does not compile:\n%s", e.Name, e.Log) }

// Source is CUDA C++ to compile.
type Source struct {
	Name    string // for messages: kernels.cu
	Text    string
	Headers map[string]string // what it includes, by the name that it is included by
	Folders []string          // where other headers are, such as cuda_bf16.h
	Arch    string            // of the GPU: 90a
}

// Compile makes a cubin, which [Load] takes. What does not compile is a [*SourceError].
func (n *NVRTC) Compile(s Source) (cubin []byte, err error) {
	var keep words
	defer keep.free()
	names := slices.Sorted(maps.Keys(s.Headers))
	var texts []string
	for _, name := range names {
		texts = append(texts, s.Headers[name])
	}
	var p C.nvrtcProgram
	r := C.planc_nvrtc_create(&p, keep.word(s.Text), keep.word(s.Name), C.int(len(names)), keep.list(texts),
		keep.list(names))
	if err := unbuilt(r, "nvrtcCreateProgram"); err != nil {
		return nil, err
	}
	defer C.planc_nvrtcDestroyProgram(&p)
	options := []string{"-std=c++17", "-arch=sm_" + s.Arch}
	for _, dir := range s.Folders {
		options = append(options, "-I"+dir)
	}
	switch r := C.planc_nvrtc_compile(p, C.int(len(options)), keep.list(options)); r {
	case C.planc_nvrtc_ok:
		return programCode(p)
	case C.planc_nvrtc_compilation:
		log, err := programLog(p)
		if err != nil {
			return nil, err
		}
		return nil, &SourceError{Name: s.Name, Log: log}
	default:
		return nil, unbuilt(r, "nvrtcCompileProgram")
	}
}

// programCode is what a program was compiled to.
func programCode(p C.nvrtcProgram) ([]byte, error) {
	var size C.size_t
	if err := unbuilt(C.planc_nvrtcGetCUBINSize(p, &size), "nvrtcGetCUBINSize"); err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, errors.New("NVRTC made no code: it was asked for PTX alone")
	}
	cubin := make([]byte, size)
	return cubin, unbuilt(C.planc_nvrtcGetCUBIN(p, (*C.char)(unsafe.Pointer(&cubin[0]))), "nvrtcGetCUBIN")
}

// programLog is what the compiler said; the size counts the zero at the end.
func programLog(p C.nvrtcProgram) (string, error) {
	var size C.size_t
	if err := unbuilt(C.planc_nvrtcGetProgramLogSize(p, &size), "nvrtcGetProgramLogSize"); err != nil || size == 0 {
		return "", err
	}
	text := make([]byte, size)
	err := unbuilt(C.planc_nvrtcGetProgramLog(p, (*C.char)(unsafe.Pointer(&text[0]))), "nvrtcGetProgramLog")
	return strings.TrimRight(string(text), "\x00\n"), err
}

// words are strings for C, all freed at once.
type words []unsafe.Pointer

func (w *words) word(s string) *C.char {
	c := C.CString(s)
	*w = append(*w, unsafe.Pointer(c))
	return c
}

// list is an array of strings, nil for none.
func (w *words) list(of []string) **C.char {
	if len(of) == 0 {
		return nil
	}
	array := C.calloc(C.size_t(len(of)), C.size_t(unsafe.Sizeof((*C.char)(nil))))
	*w = append(*w, array)
	slots := unsafe.Slice((**C.char)(array), len(of))
	for i, s := range of {
		slots[i] = w.word(s)
	}
	return (**C.char)(array)
}

func (w *words) free() {
	for _, p := range *w {
		C.free(p)
	}
}
