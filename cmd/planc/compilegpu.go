package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/cuda/kernels"
)

// targets are the platforms that binaries are for.
var targets = map[string]codegen.Target{"cpu": codegen.CPU, "cuda": codegen.GPU}

// targetNamed is the platform that --target names.
func targetNamed(name string) (codegen.Target, error) {
	on, ok := targets[name]
	if !ok {
		return on, inputErrorf(UnknownTarget, nearestTarget(name), "no target %s", name)
	}
	return on, nil
}

// nearestTarget is what someone who writes another name of a platform wants.
func nearestTarget(name string) string {
	for _, gpu := range []string{"gpu", "nvidia", "cu", "nv"} {
		if strings.HasPrefix(strings.ToLower(name), gpu) {
			return "cuda"
		}
	}
	return "cpu"
}

// minArch is the oldest architecture that kernels are for: they have bf16, and copies beside the computation.
const minArch = 80

// checkGPUs refuses to build for GPUs where the plan is for a CPU, or for GPUs that are too old.
func checkGPUs(j *loaded, on codegen.Target) error {
	switch gpu := j.Hardware.GPU; {
	case on != codegen.GPU:
		return nil
	case j.Hardware.IsCPU():
		return inputErrorf(UnknownTarget, "",
			"--target cuda is for jobs on GPUs, and the cluster of this one is a CPU; --cluster names GPUs")
	case archNumber(gpu.Arch) < minArch:
		return inputErrorf(UnknownTarget, "",
			"--target cuda is for GPUs of sm_%d (A100) and later, and the cluster's %s is %s; "+
				"--target cpu compiles for this CPU, --cluster names other GPUs", minArch, gpu.Name, gpu.Arch)
	}
	return nil
}

// archNumber is 90 of sm_90a.
func archNumber(arch string) int {
	n, _ := strconv.Atoi(strings.TrimRight(strings.TrimPrefix(arch, "sm_"), "abcdefghijklmnopqrstuvwxyz"))
	return n
}

// Where a GPU's program has its kernels, and how those that are compiled end.
const (
	kernelFolder    = "kernels"
	compiledKernels = ".fatbin"
	printedKernels  = "chains.cu"
)

// addKernels compiles a program's kernels, its own and those of the runtime, for the GPUs of the job.
func (a *app) addKernels(j *loaded, files map[string][]byte, in codegen.Input) error {
	r := build.KernelRequest{Files: map[string][]byte{},
		Archs: []string{strings.TrimPrefix(j.Hardware.GPU.Arch, "sm_")}}
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
	return a.compileKernels(r, files)
}

// compileKernels runs nvcc and adds what it makes.
func (a *app) compileKernels(r build.KernelRequest, files map[string][]byte) error {
	ctx, stop := untilSignal()
	defer stop()
	start := time.Now()
	return a.timed("kernels", func() (string, error) {
		nvcc, err := build.FindNVCC(ctx)
		if missing := (*build.NoNVCCError)(nil); errors.As(err, &missing) {
			a.note("kernels", "there is no nvcc here: the program compiles its kernels where it runs, at each start, "+
				"and needs NVRTC there")
			return "left to the program", nil
		}
		if err != nil {
			return "", err
		}
		end := a.watchKernels(&r)
		k, err := nvcc.CompileKernels(ctx, r)
		end()
		if err != nil && ctx.Err() != nil {
			return "", fmt.Errorf("stopped while building")
		}
		for name, fatbin := range k.Fatbins {
			files[path.Join(kernelFolder, strings.TrimSuffix(name, ".cu")+compiledKernels)] = fatbin
		}
		if err == nil && !a.verbose {
			a.sayKernels(k, time.Since(start))
		}
		return fmt.Sprintf("%d of %d cached, nvcc %s, sm_%s", k.Cached, len(k.Fatbins), nvcc.Version,
			strings.Join(r.Archs, ", sm_")), err
	})
}

// watchKernels has a compilation say on a terminal how many kernels there are already; what it returns ends that.
func (a *app) watchKernels(r *build.KernelRequest) (end func()) {
	if a.quiet || !a.terminal {
		return func() {}
	}
	line := newProgress()
	r.Watch = func(done, all int) {
		line.set(func() string { return fmt.Sprintf("kernels  %d of %d", done, all) })
	}
	return line.show(a.stderr)
}

// sayKernels says what nvcc took, the longest part of a compilation: as much as "built" says of the rest.
func (a *app) sayKernels(k build.Kernels, took time.Duration) {
	how := fmt.Sprintf("%.1f s, kept for the next time", took.Seconds())
	if k.Cached == len(k.Fatbins) {
		how = "cached"
	}
	a.note("kernels", how)
}
