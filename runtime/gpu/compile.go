//go:build cuda && linux

package gpu

import (
	"fmt"
	"io/fs"
	"sync"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
)

// made are kernels that this process has compiled, by source and architecture: GPUs of one kind share them.
var made = struct {
	sync.Mutex
	cubins map[string][]byte
}{cubins: map[string][]byte{}}

// compiledHere compiles the text of a source, if reading it has not failed, with NVRTC. It takes some seconds each.
func compiledHere(source string, text []byte, arch string, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	made.Lock()
	defer made.Unlock()
	key := fmt.Sprintf("%s for sm_%s\n%s", source, arch, text)
	if cubin := made.cubins[key]; cubin != nil {
		return cubin, nil
	}
	nvrtc, err := cuda.OpenNVRTC()
	if err != nil {
		return nil, fmt.Errorf("the program was built without nvcc, and its kernels are compiled where it runs: %w", err)
	}
	headers, err := headersOf(kernels.Sources)
	if err != nil {
		return nil, err
	}
	cubin, err := nvrtc.Compile(cuda.Source{Name: source, Text: string(text), Headers: headers, Arch: arch})
	if err == nil {
		made.cubins[key] = cubin
	}
	return cubin, err
}

// headersOf are what sources include.
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
