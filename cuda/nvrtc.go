//go:build cuda && linux

package cuda

/*
#include <stdlib.h>
#include "nvrtc.h"
#include "open.h"

// Calls whose types cgo cannot express.
static nvrtcResult planc_nvrtc_create(nvrtcProgram *p, const char *source, const char *name, int n, char **texts,
		char **names) {
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

// NVRTC is NVIDIA's runtime compiler of CUDA C++, for programs that were built without nvcc.
type NVRTC struct {
	Path    string
	Version string // such as 13.5
}

var openNVRTC = sync.OnceValues(func() (*NVRTC, error) { return loadNVRTC(nil) })

// OpenNVRTC opens NVRTC from the system's library path. It fails with a [*MissingError] or an [*OldError].
func OpenNVRTC() (*NVRTC, error) { return openNVRTC() }

func loadNVRTC(folders []string) (*NVRTC, error) {
	path, err := load(LibraryNamed("NVRTC"), folders, "nvrtcVersion", func(l unsafe.Pointer) *C.char {
		return C.planc_bind_nvrtc(l)
	})
	if err != nil {
		return nil, err
	}
	var major, minor C.int
	if err := nvrtcError(C.planc_nvrtcVersion(&major, &minor), "nvrtcVersion"); err != nil {
		return nil, err
	}
	return &NVRTC{Path: path, Version: fmt.Sprintf("%d.%d", major, minor)}, nil
}

// nvrtcError returns the error of a call of NVRTC, and nil if the call succeeded.
func nvrtcError(r C.nvrtcResult, call string) error {
	if r == C.planc_nvrtc_ok {
		return nil
	}
	return &Error{Call: call, Code: int(r), Name: "nvrtcResult", Text: C.GoString(C.planc_nvrtcGetErrorString(r))}
}

// SourceError reports CUDA C++ that does not compile.
type SourceError struct {
	Name string // of the source
	Log  string // the compiler's messages
}

func (e *SourceError) Error() string { return fmt.Sprintf("%s does not compile:\n%s", e.Name, e.Log) }

// Source is CUDA C++ code to compile.
type Source struct {
	Name    string // for messages, such as kernels.cu
	Text    string
	Headers map[string]string // included files, by the name in the include
	Folders []string          // paths of other headers, such as cuda_bf16.h
	Arch    string            // architecture of the GPU, such as 90a
}

// Compile compiles a source to a cubin for [Load]. It fails with a [*SourceError] if the source does not
// compile.
func (n *NVRTC) Compile(s Source) (cubin []byte, err error) {
	var keep cStrings
	defer keep.free()
	names := slices.Sorted(maps.Keys(s.Headers))
	var texts []string
	for _, name := range names {
		texts = append(texts, s.Headers[name])
	}
	var p C.nvrtcProgram
	r := C.planc_nvrtc_create(&p, keep.word(s.Text), keep.word(s.Name), C.int(len(names)), keep.list(texts),
		keep.list(names))
	if err := nvrtcError(r, "nvrtcCreateProgram"); err != nil {
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
		return nil, nvrtcError(r, "nvrtcCompileProgram")
	}
}

// programCode returns the compiled code of a program.
func programCode(p C.nvrtcProgram) ([]byte, error) {
	var size C.size_t
	if err := nvrtcError(C.planc_nvrtcGetCUBINSize(p, &size), "nvrtcGetCUBINSize"); err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, errors.New("NVRTC returned only PTX, no code for the GPU")
	}
	cubin := make([]byte, size)
	return cubin, nvrtcError(C.planc_nvrtcGetCUBIN(p, (*C.char)(unsafe.Pointer(&cubin[0]))), "nvrtcGetCUBIN")
}

// programLog returns the compiler's messages. The size includes the terminating zero.
func programLog(p C.nvrtcProgram) (string, error) {
	var size C.size_t
	if err := nvrtcError(C.planc_nvrtcGetProgramLogSize(p, &size), "nvrtcGetProgramLogSize"); err != nil || size == 0 {
		return "", err
	}
	text := make([]byte, size)
	err := nvrtcError(C.planc_nvrtcGetProgramLog(p, (*C.char)(unsafe.Pointer(&text[0]))), "nvrtcGetProgramLog")
	return strings.TrimRight(string(text), "\x00\n"), err
}

// cStrings holds C strings, which are freed together.
type cStrings []unsafe.Pointer

func (w *cStrings) word(s string) *C.char {
	c := C.CString(s)
	*w = append(*w, unsafe.Pointer(c))
	return c
}

// list returns a C array of strings, and nil for none.
func (w *cStrings) list(texts []string) **C.char {
	if len(texts) == 0 {
		return nil
	}
	array := C.calloc(C.size_t(len(texts)), C.size_t(unsafe.Sizeof((*C.char)(nil))))
	*w = append(*w, array)
	slots := unsafe.Slice((**C.char)(array), len(texts))
	for i, s := range texts {
		slots[i] = w.word(s)
	}
	return (**C.char)(array)
}

func (w *cStrings) free() {
	for _, p := range *w {
		C.free(p)
	}
}
