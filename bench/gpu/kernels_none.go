//go:build !cuda || !linux

package main

import (
	"errors"
	"io"
)

// runKernels needs the tag cuda: go build -tags cuda ./bench/gpu.
func runKernels(io.Writer, *bench, []string) error {
	return errors.New("this gpu-check was built without kernels: build it with -tags cuda")
}
