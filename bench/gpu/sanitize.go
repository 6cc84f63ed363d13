package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// findings is the exit code of compute-sanitizer if it found something; other errors have other codes.
const findings = 99

// sanitizerTool finds compute-sanitizer: on PATH, in toolkit folders, or next to the libraries of Python's wheels; ""
// if it is missing.
func (b *bench) sanitizerTool() string {
	if path, err := exec.LookPath("compute-sanitizer"); err == nil {
		return path
	}
	patterns := []string{"/usr/local/cuda*/bin/compute-sanitizer",
		"/usr/local/cuda*/compute-sanitizer/compute-sanitizer", "/opt/nvidia/*/compute-sanitizer",
		"/opt/nvidia/*/*/compute-sanitizer/compute-sanitizer",
		"/usr/lib/nvidia-cuda-toolkit/compute-sanitizer/compute-sanitizer"}
	for _, v := range b.env {
		if dirs, ok := strings.CutPrefix(v, "LD_LIBRARY_PATH="); ok {
			for _, dir := range filepath.SplitList(dirs) {
				patterns = append(patterns, filepath.Join(dir, "../bin/compute-sanitizer"), filepath.Join(dir,
					"../compute-sanitizer/compute-sanitizer"))
			}
		}
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern) // the pattern is valid
		for _, path := range found {
			if path, err := exec.LookPath(path); err == nil {
				return path
			}
		}
	}
	return ""
}

// sanitizing returns the command line that runs a command under one of the tools.
func sanitizing(tool, kind string) []string {
	wrap := []string{tool, "--tool", kind, "--error-exitcode", strconv.Itoa(findings), "--print-limit", "5"}
	// Libraries ask the driver for optional features; programs report errors of their own calls themselves.
	if kind == "memcheck" {
		wrap = append(wrap, "--report-api-errors", "no")
	}
	return wrap
}

// judged returns what a tool reports about a command, from its output and error, and whether it found something.
func judged(out []byte, err error) (says string, found bool) {
	exit := (*exec.ExitError)(nil)
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == findings:
		return "found: " + tail(string(out), 600), true
	case err != nil:
		return "did not end: " + tail(string(out)+err.Error(), 600), false
	}
	return "nothing", false
}

// sanitized is a command to run under a tool.
type sanitized struct {
	name string
	args []string
	env  []string
}

// sanitizedCommands returns the trials of kernels with small shapes, and programs of the laws that together have
// every kind of plan in every type. The command that adds most comes first.
func (b *bench) sanitizedCommands() ([]sanitized, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all []sanitized
	for _, job := range []string{"kernel", "attention", "fp8"} {
		all = append(all, sanitized{"trials: " + job, []string{self, "kernel", "-dir", b.dir, "-tiny", job}, nil})
	}
	text, err := os.ReadFile(b.program("laws.json"))
	if err != nil {
		return nil, err
	}
	var groups []*LawGroup
	if err := json.Unmarshal(text, &groups); err != nil {
		return nil, fmt.Errorf("laws.json: %w", err)
	}
	for _, g := range covering(groups) {
		all = append(all, sanitized{g.Plan, []string{b.program("laws"), g.Name}, []string{"PLANC_SHARE_GPU=1"}})
	}
	return all, nil
}

// covering chooses groups that together have all kinds of plan, and in each type each kind that decides which kernels
// run. The group that adds most comes first.
func covering(groups []*LawGroup) (chosen []*LawGroup) {
	had := map[string]bool{}
	for {
		var best *LawGroup
		largest := 0
		for _, g := range groups {
			n := 0
			for _, k := range g.features() {
				if !had[k] {
					n++
				}
			}
			if n > largest {
				best, largest = g, n
			}
		}
		if best == nil {
			return chosen
		}
		for _, k := range best.features() {
			had[k] = true
		}
		chosen = append(chosen, best)
	}
}

// features returns a group's kinds, and the compute type together with each kind that selects kernels.
func (g *LawGroup) features() (out []string) {
	elem := g.Cases[len(g.Cases)-1].Type
	for _, k := range strings.Split(g.Kinds, ", ") {
		out = append(out, k)
		if strings.HasPrefix(k, "cp ") || strings.HasPrefix(k, "tp ") || strings.HasPrefix(k, "ep ") {
			out = append(out, k+" in "+elem)
		}
	}
	model, _, _ := strings.Cut(g.Plan, ":") // the model and its optimizer
	return append(out, elem, model)
}

// sanitize runs the commands under a tool, as many as there is time for.
func sanitize(kind string) func(context.Context, *bench, *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		tool := b.sanitizerTool()
		if tool == "" {
			r.note("compute-sanitizer is not installed")
			return nil
		}
		all, err := b.sanitizedCommands()
		if err != nil {
			return err
		}
		r.Columns = []string{"command", "result of " + kind}
		bad, broken := 0, 0
		for _, c := range all {
			args := slices.Concat(sanitizing(tool, kind), c.args)
			out, err := b.output(ctx, c.env, args[0], args[1:]...)
			if ctx.Err() != nil {
				break
			}
			says, found := judged(out, err)
			if found {
				bad++
			} else if err != nil {
				broken++
			}
			r.row(c.name, says)
		}
		r.note("%d of %d commands ran in time", len(r.Rows), len(all))
		switch {
		case bad > 0:
			return faultf("%s found something in %d of %d commands", kind, bad, len(r.Rows))
		case broken > 0:
			return fmt.Errorf("%d of %d commands did not end under %s", broken, len(r.Rows), kind)
		case len(r.Rows) == 0:
			return fmt.Errorf("no command ended in time under %s", kind)
		}
		return nil
	}
}
