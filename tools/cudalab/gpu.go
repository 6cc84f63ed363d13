package main

// #include <cuda.h>
// #include <stdlib.h>
//
// static CUresult launchWide(CUfunction f, const unsigned *shape, CUstream stream, void **args) {
//	return cuLaunchKernel(f, shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], 0, stream, args, NULL);
// }
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/planc-dev/planc/cuda/kernels"
)

// gpu is the first GPU with the kernels of a folder. It is never closed: the process ends with it.
type gpu struct {
	dir      string
	stream   cu.Stream
	from, to cu.Event
	modules  map[string]cu.Module // by kernel file
	memory   []cu.DevicePtr       // freed by release
}

// open returns the first GPU with the kernels DIR/kernels/NAME.fatbin.
func open(dir string) (*gpu, error) {
	device, err := cu.GetDevice(0)
	if err != nil {
		return nil, fmt.Errorf("the first GPU: %w", err)
	}
	context, err := device.RetainPrimaryCtx()
	if err == nil {
		err = cu.SetCurrentContext(context)
	}
	g := &gpu{dir: filepath.Join(dir, "kernels"), modules: map[string]cu.Module{}}
	if err == nil {
		g.stream, err = cu.MakeStreamWithPriority(0, cu.NonBlocking)
	}
	for _, e := range []*cu.Event{&g.from, &g.to} {
		if err == nil {
			*e, err = cu.MakeEvent(cu.DefaultEvent)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the first GPU: %w", err)
	}
	return g, nil
}

// function returns a function of a kernel file.
func (g *gpu) function(file, name string) (cu.Function, error) {
	m, loaded := g.modules[file]
	if !loaded {
		image, err := os.ReadFile(filepath.Join(g.dir, strings.TrimSuffix(file, ".cu")+".fatbin"))
		if err != nil {
			return cu.Function{}, err
		}
		m, err = cu.LoadData(string(image))
		if err != nil {
			return cu.Function{}, fmt.Errorf("loading %s: %w", file, err)
		}
		g.modules[file] = m
	}
	f, err := m.Function(name)
	if err != nil {
		return f, fmt.Errorf("%s has no function %s: %w", file, name, err)
	}
	return f, nil
}

// put allocates memory with some contents, until release.
func (g *gpu) put(data []byte) (cu.DevicePtr, error) {
	p, err := cu.MemAlloc(int64(max(len(data), 256)))
	if err != nil {
		return 0, err
	}
	g.memory = append(g.memory, p)
	if len(data) > 0 {
		err = cu.MemcpyHtoD(p, unsafe.Pointer(&data[0]), int64(len(data)))
	}
	return p, err
}

// waitForCopies waits for what put copies: the call may return while the copy is in progress, and streams do not wait for it.
func waitForCopies() error { return cu.Synchronize() }

// get reads memory after all work is done.
func (g *gpu) get(data []byte, p cu.DevicePtr) error {
	err := g.stream.Synchronize()
	if err == nil && len(data) > 0 {
		err = cu.MemcpyDtoH(unsafe.Pointer(&data[0]), p, int64(len(data)))
	}
	return err
}

// release frees what put allocated.
func (g *gpu) release() error {
	for _, p := range g.memory {
		if err := cu.MemFree(p); err != nil {
			return err
		}
	}
	g.memory = nil
	return nil
}

// launch enqueues a launch. cu passes 8 bytes of each argument, so structs by value are passed by a call of our own.
func (g *gpu) launch(f cu.Function, l kernels.Launch, args [][]byte) error {
	words := make([]unsafe.Pointer, len(args))
	wide := false
	for i, a := range args {
		wide = wide || len(a) > 8
		word := make([]byte, max(len(a), 8))
		copy(word, a)
		words[i] = unsafe.Pointer(&word[0])
	}
	grid, block := atLeastOne(l.Grid), atLeastOne(l.Block)
	if !wide {
		return f.Launch(grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, g.stream, words)
	}
	list := unsafe.Slice((*unsafe.Pointer)(C.malloc(C.size_t(8*len(args)))), len(args))
	defer C.free(unsafe.Pointer(&list[0]))
	for i, a := range args {
		list[i] = C.CBytes(a)
		defer C.free(list[i])
	}
	shape := [6]C.uint{C.uint(grid[0]), C.uint(grid[1]), C.uint(grid[2]), C.uint(block[0]), C.uint(block[1]),
		C.uint(block[2])}
	function, stream := *(*C.CUfunction)(unsafe.Pointer(&f)), *(*C.CUstream)(unsafe.Pointer(&g.stream))
	if code := C.launchWide(function, &shape[0], stream, &list[0]); code != 0 {
		return fmt.Errorf("cuLaunchKernel returned %d", int(code))
	}
	return nil
}

// atLeastOne returns the dimensions of a grid or a block, of which 0 stands for 1.
func atLeastOne(n [3]int) [3]int { return [3]int{max(n[0], 1), max(n[1], 1), max(n[2], 1)} }

// seconds returns the mean seconds of n launches that do enqueues.
func (g *gpu) seconds(n int, do func() error) (float64, error) {
	if err := g.from.Record(g.stream); err != nil {
		return 0, err
	}
	for range n {
		if err := do(); err != nil {
			return 0, err
		}
	}
	if err := g.to.Record(g.stream); err != nil {
		return 0, err
	}
	if err := g.to.Synchronize(); err != nil {
		return 0, err
	}
	ms, err := g.from.Elapsed(g.to)
	return ms / 1e3 / float64(n), err
}
