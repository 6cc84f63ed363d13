package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/runtime"
)

// UnknownTarget is reported if --target does not name a platform that can run the job.
//
// Example:
//
//	planc compile -o train --target gpu
const UnknownTarget ir.Code = "UnknownTarget"

func (a *app) compileCommand() *cobra.Command {
	var flags jobFlags
	var locks lockFlags
	var out, target, emit string
	c := &cobra.Command{
		Use:   "compile [JOB] -o BIN",
		Short: "build one binary that trains the job",
		Long: `compile uses the plan of the lock next to the job, or searches for a plan and writes the lock. It generates
Go for all ranks and builds one binary with the go command, version 1.26 or newer. It needs no network. The same job
gives the same bytes in any folder.

With --target cuda, the binary trains on the NVIDIA GPUs of the job's cluster. Building it needs a C compiler, but no
GPU. Without nvcc, the binary compiles its kernels with NVRTC at each start.`,
		Example: "planc compile planc.yaml -o train && ./train --steps 100",
		Args:    oneJob,
		RunE: func(c *cobra.Command, args []string) error {
			on, err := targetNamed(target)
			if err != nil {
				return err
			}
			if out == "" {
				return inputErrorf(BadFlag, "", "planc compile needs -o BIN, the path of the binary")
			}
			job, err := a.load(args, flags)
			if err != nil {
				return err
			}
			if err := errors.Join(checkOut(out), checkEmit(emit), checkGPUs(job, on)); err != nil {
				return err
			}
			_, err = a.compile(job, build.Request{Out: out}, emit, locks, on)
			if err == nil {
				a.notef("binary   %s", slashed(out))
				if v := build.GLIBC(out); v != "" {
					a.note("needs", fmt.Sprintf("glibc %s or newer, as on this machine; compile on the oldest system "+
						"that the binary must run on", v))
				}
				if emit != "" {
					a.notef("sources  %s", slashed(emit))
				}
				if !job.Hardware.IsCPU() && !c.Flags().Changed("target") {
					a.note("target", fmt.Sprintf("cpu: all %d ranks run on one CPU instead of %s; --target cuda "+
						"builds for GPUs",
						job.Hardware.Devices(), planner.ClusterText(job.Hardware)))
				}
			}
			return err
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "write the binary to `BIN`")
	flags.register(c)
	c.Flags().StringVar(&target, "target", "cpu", "build for `PLATFORM`: cpu or cuda")
	c.Flags().StringVar(&emit, "emit", "", "also write the generated sources to `DIR`")
	locks.register(c)
	return c
}

// checkOut checks before compiling that the binary can be written to out.
func checkOut(out string) error {
	if info, err := os.Stat(out); err == nil && info.IsDir() || os.IsPathSeparator(out[len(out)-1]) {
		return inputErrorf(BadFlag, filepath.Join(out, "train"),
			"-o %s is a folder; it must be the path of the binary", out)
	}
	if err := replaceable(out); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(out), filepath.Base(out)+".*.partial")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("-o %s cannot be written: there is no folder %s; create it, or use another path", out,
			filepath.Dir(out))
	}
	if err != nil {
		return fmt.Errorf("-o %s cannot be written: %w", out, errors.Unwrap(err))
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

// checkEmit checks before compiling that generated sources can be written to dir.
func checkEmit(dir string) error {
	if dir == "" {
		return nil
	}
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		var f *os.File
		f, err = os.CreateTemp(dir, "*.partial")
		if err == nil {
			_ = f.Close()
			return os.Remove(f.Name())
		}
	}
	return fmt.Errorf("--emit %s cannot be written: %w; it must be a folder, or a path where one can be created", dir,
		errors.Unwrap(err))
}

// compile builds the job's binary, reports how it was built, and writes the lock. For planc run (r.Host) it leaves the
// lock unchanged.
func (a *app) compile(job *loaded, r build.Request, emit string, f lockFlags, on codegen.Target) (build.Result, error) {
	g, err := a.generate(job, f, on)
	if err != nil {
		return build.Result{}, err
	}
	if err := writeFiles(emit, g.files); err != nil {
		return build.Result{}, err
	}
	if on == codegen.GPU {
		r.CUDA = cuda.Sources
	}
	built, err := a.build(r, g.files)
	switch {
	case err != nil:
		return built, err
	case r.Host || job.overridden:
		a.reportStaleLock(job, g.decision, "The lock was not written.")
	default:
		a.reportStaleLock(job, g.decision, "")
		a.saveLock(job, g.decision, g.program)
	}
	return built, nil
}

// build runs the go command on generated files.
func (a *app) build(r build.Request, files map[string][]byte) (build.Result, error) {
	ctx, stop := untilSignal()
	defer stop()
	r.Files, r.Runtime, r.Version = files, runtime.Sources, version
	end := a.watchBuild(&r)
	built, err := build.Build(ctx, r)
	end()
	switch {
	case err != nil && ctx.Err() != nil:
		return built, fmt.Errorf("stopped while building")
	case err != nil:
		return built, err
	}
	how := fmt.Sprintf("%.1f s", built.Seconds)
	if built.Cached {
		how = "cached"
	}
	a.notef("built    %s", how)
	return built, nil
}

// timed runs a step of compiling and, with -v, reports how long it took.
func (a *app) timed(what string, step func() (string, error)) error {
	start := time.Now()
	var result string
	err := a.runWithNotice(what, func() (err error) { result, err = step(); return err })
	if err == nil && a.verbose {
		a.notef("%s %s, %.2f s", layout.Pad(what, 8), result, time.Since(start).Seconds())
	}
	return err
}

// writeFiles writes generated sources to the folder of --emit, if any.
func writeFiles(dir string, files map[string][]byte) error {
	if dir == "" {
		return nil
	}
	files = maps.Clone(files)
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return path.Ext(name) == compiledKernels })
	for name := range files {
		if err := generatedOrNew(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	for name, data := range files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return fmt.Errorf("write the generated sources: %w", err)
		}
		if _, err := writeWhole(to, data); err != nil {
			return fmt.Errorf("write the generated sources: %w", err)
		}
	}
	return nil
}
