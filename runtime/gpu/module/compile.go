//go:build cuda && linux

package module

import (
	"fmt"
	"io/fs"
	"runtime"
	"sync"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
)

// compiled holds, for each source and architecture, a function that compiles it once in this process. GPUs
// of one kind share the result.
var compiled sync.Map

// compilers limits the number of concurrent compilations.
var compilers = make(chan struct{}, runtime.NumCPU())

// compiledHere compiles a source with NVRTC, which takes some seconds. It returns err if reading the source
// has failed.
func compiledHere(source string, text []byte, arch string, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	f, _ := compiled.LoadOrStore(fmt.Sprintf("%s for sm_%s\n%s", source, arch, text),
		sync.OnceValues(func() ([]byte, error) {
			return compileNow(source, text, arch)
		}))
	return f.(func() ([]byte, error))()
}

func compileNow(source string, text []byte, arch string) ([]byte, error) {
	compilers <- struct{}{}
	defer func() { <-compilers }()
	nvrtc, err := cuda.OpenNVRTC()
	if err != nil {
		return nil, fmt.Errorf("the program was built without nvcc, so its kernels must be compiled on this "+
			"machine: %w",
			err)
	}
	headers, err := headersOf(kernels.Sources)
	if err != nil {
		return nil, err
	}
	return nvrtc.Compile(cuda.Source{Name: source, Text: string(text), Headers: headers, Arch: arch})
}

// headersOf returns the headers that the sources include.
func headersOf(sources fs.FS) (map[string]string, error) {
	names, err := fs.Glob(sources, "*.cuh")
	headers := map[string]string{}
	for _, name := range names {
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return nil, err
		}
		headers[name] = string(text)
	}
	return headers, err
}
