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

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/runtime"
)

// UnknownTarget is reported for a --target that is no platform.
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
		Short: "one binary that trains the job",
		Long: "compile obeys the lock beside the job, or searches the plan and writes the lock; it generates Go " +
			"for all\n" +
			"ranks, and builds one binary with the go command, which must be 1.26 or newer. It needs no network. " +
			"The same\n" +
			"job gives the same bytes from any folder. With --target cuda the binary trains on the NVIDIA GPUs that " +
			"the job\n" +
			"names; building it needs a C compiler and no GPU. Without nvcc it compiles its kernels at each start, " +
			"with NVRTC.",
		Example: "planc compile planc.yaml -o train && ./train --steps 100",
		Args:    oneJob,
		RunE: func(c *cobra.Command, args []string) error {
			on, err := targetNamed(target)
			if err != nil {
				return err
			}
			if out == "" {
				return inputErrorf(BadFlag, "", "planc compile needs -o BIN, where the binary goes")
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
					a.note("needs", fmt.Sprintf("glibc %s or newer, by the C library of this machine; compile on the "+
						"oldest system that it is to run on", v))
				}
				if emit != "" {
					a.notef("sources  %s", slashed(emit))
				}
				if !job.Hardware.IsCPU() && !c.Flags().Changed("target") {
					a.note("target", fmt.Sprintf("cpu: all %d ranks run on one CPU, in place of %s; --target cuda "+
						"builds for GPUs",
						job.Hardware.Devices(), planner.ClusterText(job.Hardware)))
				}
			}
			return err
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "where the binary goes: `BIN`")
	flags.register(c)
	c.Flags().StringVar(&target, "target", "cpu", "`PLATFORM` that the binary is for: cpu, cuda")
	c.Flags().StringVar(&emit, "emit", "", "also write the generated sources to `DIR`")
	locks.register(c)
	return c
}

// checkOut finds before the work whether the binary can be written where it shall go.
func checkOut(out string) error {
	if info, err := os.Stat(out); err == nil && info.IsDir() || os.IsPathSeparator(out[len(out)-1]) {
		return inputErrorf(BadFlag, filepath.Join(out, "train"), "-o %s is a folder; the binary's name is wanted", out)
	}
	if err := replaceable(out); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(out), filepath.Base(out)+".*.partial")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("-o %s cannot be written: there is no folder %s; make it first, or name another", out,
			filepath.Dir(out))
	}
	if err != nil {
		return fmt.Errorf("-o %s cannot be written: %w", out, errors.Unwrap(err))
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

// checkEmit finds before the work whether generated sources can be written where they shall go.
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
	return fmt.Errorf("--emit %s cannot be written: %w; a folder is wanted, which is made if it is not there", dir,
		errors.Unwrap(err))
}

// compile makes the job's binary where the request says, tells how it went, and writes the lock. A request for this
// machine alone, which is planc run's, leaves the lock as it is.
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

// timed runs a step of compiling and tells how long it took.
func (a *app) timed(what string, step func() (string, error)) error {
	start := time.Now()
	var result string
	err := a.runWithNotice(what, func() (err error) { result, err = step(); return err })
	if err == nil && a.verbose {
		a.notef("%s %s, %.2f s", pad(what, 8), result, time.Since(start).Seconds())
	}
	return err
}

// writeFiles puts generated files where the user wants to read them.
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
