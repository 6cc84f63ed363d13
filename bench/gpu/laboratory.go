package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// laboratory runs the kernels through another binding of the driver, gorgonia.org/cu: first their tests, which compare
// each kernel with the CPU's loop, then those of a training step, with times.
func laboratory(ctx context.Context, b *bench, r *Result) error {
	program := b.program("cudalab")
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		r.note("the archive has no cudalab: build it with PLANC_CUDA12_INCLUDE set to a folder with cuda.h of CUDA 12")
		return nil
	}
	commands := [][]string{{"check", b.dir}, {"time", b.dir}}
	if b.tiny {
		commands = [][]string{{"check", b.dir, "^TestNorms$"}}
	}
	for _, args := range commands {
		out, err := b.output(ctx, nil, program, args...)
		if err != nil {
			return faultf("cudalab %s: %w", args[0], err)
		}
		for line := range strings.Lines(string(out)) {
			r.note("%s", strings.TrimRight(line, "\n"))
		}
	}
	return nil
}
