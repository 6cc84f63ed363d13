package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/machine"
	"github.com/planc-dev/planc/cmd/planc/internal/process"
	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/cuda/kernels"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// targets maps the values of --target to platforms.
var targets = map[string]codegen.Target{"cpu": codegen.CPU, "cuda": codegen.GPU}

// targetNamed returns the platform that --target names.
func targetNamed(name string) (codegen.Target, error) {
	on, ok := targets[name]
	if !ok {
		return on, inputErrorf(UnknownTarget, nearestTarget(name), "unknown target %s; the targets are cpu and cuda",
			name)
	}
	return on, nil
}

// nearestTarget returns the platform that another name most likely means.
func nearestTarget(name string) string {
	for _, gpu := range []string{"gpu", "nvidia", "cu", "nv"} {
		if strings.HasPrefix(strings.ToLower(name), gpu) {
			return "cuda"
		}
	}
	return "cpu"
}

// minArch is the oldest compute capability that the kernels support, times 10: they need bf16 and asynchronous copies.
const minArch = 80

// checkGPUs reports an error for --target cuda if the job's cluster is a CPU, or has GPUs that are too old, or if the
// kernels for GPUs lack what the job needs.
func checkGPUs(j *loaded, on codegen.Target) error {
	switch gpu := j.Hardware.GPU; {
	case on != codegen.GPU:
		return nil
	case j.Hardware.IsCPU():
		return inputErrorf(UnknownTarget, "",
			"--target cuda needs a job on GPUs, and this job's cluster is a CPU; choose GPUs with --cluster NAME")
	case machine.ArchNumber(gpu.Arch) < minArch:
		return inputErrorf(UnknownTarget, "",
			"--target cuda needs GPUs of sm_%d (A100) or later, and the cluster's %s is %s; use --target cpu to "+
				"compile for this CPU, or --cluster NAME to choose other GPUs", minArch, gpu.Name, gpu.Arch)
	case j.Data.DocumentMask:
		return ir.Diags{{Pos: j.Pos("data.document_mask"), Code: strict.NotYet, Msg: "not supported yet: " +
			"data.document_mask on GPUs; use data.documents: separate, which pads each document, or --target cpu"}}
	}
	return nil
}

// Files of a GPU program: the folder of its kernels, the suffix of compiled kernels, and the generated kernels.
const (
	kernelFolder    = "kernels"
	compiledKernels = ".fatbin"
	printedKernels  = "chains.cu"
)

// addKernels compiles the kernels of a program, both generated ones and those of the runtime, for GPUs of an
// architecture.
func addKernels(ui *console.Console, files map[string][]byte, arch string, in codegen.Input) error {
	r := build.KernelRequest{Files: map[string][]byte{},
		Archs: []string{strings.TrimPrefix(arch, "sm_")}}
	var chains bytes.Buffer
	if err := codegen.CUDA(&chains, in); err != nil {
		return err
	}
	r.Files[printedKernels] = chains.Bytes()
	files[path.Join(kernelFolder, printedKernels)] = chains.Bytes()
	err := fs.WalkDir(kernels.Sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			r.Files[name], err = fs.ReadFile(kernels.Sources, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return compileKernels(ui, r, files)
}

// compileKernels compiles kernels with nvcc and adds them to files. Without nvcc it adds nothing.
func compileKernels(ui *console.Console, r build.KernelRequest, files map[string][]byte) error {
	ctx, stop := process.UntilSignal()
	defer stop()
	start := time.Now()
	return ui.Timed("kernels", func() (string, error) {
		nvcc, err := build.FindNVCC(ctx)
		if missing := (*build.NoNVCCError)(nil); errors.As(err, &missing) {
			ui.Note("kernels", "nvcc was not found: the program compiles its kernels at each start, and needs NVRTC "+
				"where it runs")
			return "compiled at start", nil
		}
		if err != nil {
			return "", err
		}
		end := ui.WatchKernels(&r)
		k, err := nvcc.CompileKernels(ctx, r)
		end()
		if err != nil && ctx.Err() != nil {
			return "", fmt.Errorf("stopped while building")
		}
		for name, fatbin := range k.Fatbins {
			files[path.Join(kernelFolder, strings.TrimSuffix(name, ".cu")+compiledKernels)] = fatbin
		}
		if err == nil && !ui.Verbose {
			reportKernels(ui, k, time.Since(start))
		}
		return fmt.Sprintf("%d of %d cached, nvcc %s, sm_%s", k.Cached, len(k.Fatbins), nvcc.Version,
			strings.Join(r.Archs, ", sm_")), err
	})
}

// reportKernels reports the time of nvcc, the longest part of a compilation.
func reportKernels(ui *console.Console, k build.Kernels, took time.Duration) {
	how := fmt.Sprintf("%.1f s, cached for the next build", took.Seconds())
	if k.Cached == len(k.Fatbins) {
		how = "cached"
	}
	ui.Note("kernels", how)
}
