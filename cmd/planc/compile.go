package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/binary"
	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/process"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/runtime"
)

// UnknownTarget is reported if --target does not name a platform that can run the job.
//
// Example:
//
//	planc compile -o train --target gpu
const UnknownTarget ir.Code = "UnknownTarget"

func compileCommand(a *app) *cobra.Command {
	var flags jobFlags
	var locks lockFlags
	var out, target, emit string
	var withMetrics bool
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
			job, err := loadJob(a.Console, args, flags)
			if err != nil {
				return err
			}
			if err := errors.Join(checkOut(out), checkEmit(emit), checkGPUs(job, on)); err != nil {
				return err
			}
			binary := &compilation{app: a, job: job, locks: locks, on: on, withMetrics: withMetrics}
			built, err := binary.build(build.Request{Out: out}, emit)
			if err == nil {
				a.Notef("binary   %s", shell.Slashed(out))
				if v := build.GLIBC(out); v != "" {
					a.Note("needs", fmt.Sprintf("glibc %s or newer, as on this machine; compile on the oldest system "+
						"that the binary must run on", v))
				}
				if emit != "" {
					a.Notef("sources  %s", shell.Slashed(emit))
				}
				job = built.job
				if !job.Hardware.IsCPU() && !c.Flags().Changed("target") {
					a.Note("target", fmt.Sprintf("cpu: all %d ranks run on one CPU instead of %s; --target cuda "+
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
	c.Flags().BoolVar(&withMetrics, "with-metrics", false,
		"link an HTTP server, so that ./train --metrics ADDR serves Prometheus metrics")
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

// compilation compiles a job to a binary for a platform.
type compilation struct {
	*app
	job   *loaded
	locks lockFlags
	on    codegen.Target

	withMetrics bool // the binary can serve metrics
}

// builtBinary is the binary of a job, and the job on the hardware that its plan is for.
type builtBinary struct {
	build.Result
	job *loaded
}

// build builds the job's binary, reports how it was built, and writes the lock. For planc run (r.Host) it leaves the
// lock unchanged. The generated sources are also written to the folder emit, if it is not empty.
func (c *compilation) build(r build.Request, emit string) (*builtBinary, error) {
	g, err := c.generate()
	if err != nil {
		return nil, err
	}
	if err := writeFiles(emit, g.files); err != nil {
		return nil, err
	}
	if c.on == codegen.GPU {
		r.CUDA = cuda.Sources
	}
	built, err := buildBinary(c.Console, r, g.files)
	switch {
	case err != nil:
		return nil, err
	case r.Host || c.job.overridden:
		reportStaleLock(c.Console, g.decision, "The lock was not written.")
	default:
		reportStaleLock(c.Console, g.decision, "")
		saveLock(c.Console, g.decision, g.program)
	}
	return &builtBinary{built, g.job}, nil
}

// generate returns the sources of the job's binary, and the kernels that are compiled before Go is. Only the code of
// planc run, whose job has measured rates, depends on this machine, by what it expects of a step.
func (c *compilation) generate() (*generated, error) {
	if err := spec.CheckCompile(c.job.Job); err != nil {
		return nil, err
	}
	d, err := decidePlan(c.app, c.job.atCatalogueRates(), c.locks)
	if err != nil {
		return nil, err
	}
	p, err := compileProgram(c.Console, d.job, d.Best.Plan, nil)
	if err != nil {
		return nil, err
	}
	g := &generated{decision: d, program: programHash(p)}
	if err := checkProgram(c.app, d.lock, g.program, c.locks); err != nil {
		return nil, err
	}
	local, err := c.job.withLocalExpectation(d)
	if err != nil {
		return nil, err
	}
	shape := form{pkg: "main", main: true, dir: binary.DataFolder(local.job.Question), on: c.on}
	src, err := generateSource(c.Console, local, p, shape)
	g.files = map[string][]byte{"main.go": src}
	if err == nil {
		err = addTokenizer(c.Console, g.files, c.job)
	}
	if c.withMetrics {
		g.files["exporter.go"] = []byte(linkExporter)
	}
	if err == nil && c.on == codegen.GPU {
		err = addKernels(c.Console, g.files, local.job.Hardware.GPU.Arch, input(local, p, shape))
	}
	return g, err
}

// linkExporter is the source that links the server of metrics into a binary.
const linkExporter = `// Code generated by planc. DO NOT EDIT.

package main

import _ "github.com/planc-dev/planc/runtime/exporter"
`

// plainBuilds is set by tests: their programs are compiled without optimization, which computes the same and takes half
// the time.
var plainBuilds bool

// buildBinary runs the go command on generated files.
func buildBinary(ui *console.Console, r build.Request, files map[string][]byte) (build.Result, error) {
	ctx, stop := process.UntilSignal()
	defer stop()
	r.Files, r.Runtime, r.Version, r.Plain = files, runtime.Sources, version, plainBuilds
	end := ui.WatchBuild(&r)
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
	ui.Notef("built    %s", how)
	return built, nil
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
