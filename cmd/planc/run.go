package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/binary"
	"github.com/planc-dev/planc/cmd/planc/internal/process"
	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/runtime/data"
)

func runCommand(a *app) *cobra.Command {
	var flags jobFlags
	var locks lockFlags
	var target string
	c := &cobra.Command{
		Use:   "run [JOB] [-- flags of the binary]",
		Short: "compile the job (cached) and run it on this machine",
		Long: `run compiles the job, or reuses an earlier build, and replaces itself by the binary: output, signals and exit
status are those of the binary. Flags after -- are passed to it. If the job's cluster is not this machine, run
refuses; --target cpu runs all ranks on this CPU, and --target cuda runs them on this machine's GPUs. The plan of the
lock next to the job is used; the lock is never written.`,
		Example: "planc run planc.yaml -- --steps 100",
		Args: func(c *cobra.Command, args []string) error {
			job, _ := splitDash(c, args)
			return oneJob(c, job)
		},
		RunE: func(c *cobra.Command, args []string) error {
			job, rest := splitDash(c, args)
			on, err := targetNamed(target)
			if err != nil {
				return err
			}
			r := &execution{app: a, flags: flags, locks: locks, on: on, anyTarget: c.Flags().Changed("target")}
			return r.run(job, rest)
		},
	}
	flags.register(c)
	c.Flags().StringVar(&target, "target", "cpu",
		"`PLATFORM` to run on instead of the job's cluster: cpu, or cuda for this machine's GPUs")
	c.Flags().Lookup("target").DefValue = "" // without the flag, the job must be for this machine
	locks.register(c)
	return c
}

// splitDash separates the arguments before -- from those after it.
func splitDash(c *cobra.Command, args []string) (job, rest []string) {
	if n := c.ArgsLenAtDash(); n >= 0 {
		return args[:n], args[n:]
	}
	return args, nil
}

// execution runs a job on this machine.
type execution struct {
	*app
	flags     jobFlags
	locks     lockFlags
	on        codegen.Target
	anyTarget bool // --target is given: the job's cluster can be another machine
}

// run compiles and launches the job. rest holds the flags of the binary.
func (r *execution) run(args, rest []string) error {
	job, err := loadJobHere(r.Console, args, r.flags)
	if err != nil {
		return err
	}
	if !r.anyTarget && !job.Hardware.IsCPU() {
		return &otherMachineError{fmt.Sprintf("the job is for %s, and this is another machine; --target cpu runs "+
			"all %d ranks on this CPU [%s]",
			planner.ClusterText(job.Hardware), job.Hardware.Devices(), codeOtherMachine)}
	}
	if err := spec.CheckCompile(job.Job); err != nil {
		return err
	}
	if err := errors.Join(checkGPUs(job, r.on), checkData(job, rest)); err != nil {
		return err
	}
	built, err := (&compilation{app: r.app, job: job, locks: r.locks, on: r.on,
		withMetrics: slices.ContainsFunc(rest, servesMetrics)}).build(build.Request{Host: true}, "")
	if err != nil {
		return err
	}
	r.Notef("binary   %s", built.Binary)
	// the binary escapes its output itself
	return process.Launch(built.Binary, append([]string{filepath.Base(built.Binary)}, rest...),
		process.Streams{In: r.Stdin, Out: r.Stdout.To, Err: r.Stderr.To})
}

// servesMetrics reports whether a flag of the binary makes it serve metrics.
func servesMetrics(arg string) bool {
	return arg == "--metrics" || strings.HasPrefix(arg, "--metrics=")
}

// otherData lists prefixes of the binary's flags with which it does not read the job's data.
var otherData = []string{"--data", "--export", "--help", "-h", "--set=data.", "data."}

// checkData checks before compiling that the binary can train on the job's files. rest holds the flags of the binary.
func checkData(j *loaded, rest []string) error {
	if slices.ContainsFunc(rest, func(arg string) bool {
		return slices.ContainsFunc(otherData, func(p string) bool { return strings.HasPrefix(arg, p) })
	}) {
		return nil
	}
	dir := binary.DataFolder(j.Question)
	want := data.Spec{ValidFraction: j.Data.Valid.Fraction, Root: j.Data.Root, Dir: dir, Tokenizer: j.Data.Tokenizer,
		SeqLen: j.Train.SeqLen, Vocab: j.Config.Vocab, Seed: j.Train.Seed, Sampling: j.Data.Sampling,
		Weights: j.Data.Weights, Documents: j.Data.Documents, DocumentMask: j.Data.DocumentMask}
	var diags ir.Diags
	files := map[string]ir.Pos{} // position of each file's name in the job
	resolve := func(key string, from spec.Sources) (out []data.Source) {
		for i, s := range from {
			out = append(out, data.Source{Path: s.Path, Weight: s.Weight})
			at := fmt.Sprintf("%s[%d]", key, i)
			if !j.Has(at) {
				at = key
			}
			paths, err := data.Resolve(s.Path, j.Data.Root, dir)
			if err != nil {
				diags = append(diags, ir.Diag{Pos: j.Pos(at), Code: dataCode(err), Msg: err.Error()})
			}
			for _, path := range paths {
				files[path] = j.Pos(at)
			}
		}
		return out
	}
	want.Train, want.Valid = resolve("data.train", j.Data.Train), resolve("data.valid", j.Data.Valid.Files)
	if len(diags) > 0 {
		return diags.Err()
	}
	set, err := data.Open(want)
	if bad := (*data.InputError)(nil); errors.As(err, &bad) {
		at, named := files[bad.File]
		if !named {
			at = j.Pos("data.train")
		}
		return ir.Diags{{Pos: at, Code: codeBadData, Msg: bad.Msg}}
	}
	if err != nil {
		return err
	}
	return set.Close()
}

// dataCode returns the error code for a data path that cannot be used.
func dataCode(err error) ir.Code {
	if bad := (*data.InputError)(nil); errors.As(err, &bad) && bad.File != "" {
		return codeBadData
	}
	return spec.NoFile
}
