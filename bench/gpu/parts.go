package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// check is a measurement with its own time limit.
type check struct {
	name  string
	limit time.Duration
	run   func(ctx context.Context, b *bench, r *Result) error
}

// part is the work of one command on the GPU machine, with the most informative check first.
type part struct {
	name, about string
	checks      []check
}

// parts are all parts, in the order of their value for GPU time.
var parts = []part{
	{"smoke", "Whether a step runs, with which libraries", []check{
		{"machine", 2 * time.Minute, machine}, // includes the first import of PyTorch from disk
		{"losses", 2 * time.Minute, smoke},
		{"two runs", 2 * time.Minute, twoRuns},
		{"NCCL", 2 * time.Minute, ncclAlone},
		{"sanitizer", 3 * time.Minute, sanitizer},
	}},
	{"laws", "Every kind of plan compared with one rank on the CPU; ranks share the GPU", []check{
		{"law 1", 5 * time.Minute, laws},
		{"law 3", time.Minute, arenas},
		{"law 2", 2 * time.Minute, pytorch},
		{"law 1 by NCCL", 2 * time.Minute, lawsByNCCL},
	}},
	{"train", "Training compared with PyTorch: the smallest and the largest GPT-2", training("gpt2-124m",
		"gpt2-1558m")},
	{"kernels", "Each kernel's error relative to f64, and its time relative to its floor", []check{
		{"ceilings", time.Minute, ceilings},
		{"GEMMs", 2 * time.Minute, kernelChecks("gemm")},
		{"FP8 GEMMs", 2 * time.Minute, kernelChecks("fp8")},
		{"fused groups", 2 * time.Minute, kernelChecks("chain")},
		{"attention", 2 * time.Minute, kernelChecks("attention")},
		{"kernels", 3 * time.Minute, kernelChecks("kernel")},
		{"laboratory", 3 * time.Minute, laboratory},
	}},
	{"sanitize", "NVIDIA's compute-sanitizer over kernels and plans of all kinds", []check{
		{"memcheck", 3 * time.Minute, sanitize("memcheck")},
		{"racecheck", 3 * time.Minute, sanitize("racecheck")},
		{"synccheck", 2 * time.Minute, sanitize("synccheck")},
	}},
	{"curves", "200 steps compared with PyTorch, with the same weights and data", []check{
		{"loss curve", 8 * time.Minute, curves},
	}},
	{"train2", "Training compared with PyTorch: the models in between", training("gpt2-350m", "gpt2-774m", "llama-1b")},
	{"train3", "Training compared with PyTorch: sequences of 4096", training("gpt2-124m-4096", "llama-1b-4096")},
}

// call is several parts that one loan of a GPU machine runs, each within its minutes. A call takes less than 10
// minutes.
type call struct {
	name  string
	parts []timedPart
}

type timedPart struct {
	name    string
	minutes float64
}

// calls are the three calls that docs/measured/METHOD.md plans.
var calls = []call{
	{"call1", []timedPart{{"smoke", 2.5}, {"train", 7}}},
	{"call2", []timedPart{{"kernels", 5}, {"laws", 4.5}}},
	{"call3", []timedPart{{"train2", 6}, {"curves", 3.5}}},
}

// run runs the parts, also after one that failed.
func (c *call) run(ctx context.Context, b *bench) (err error) {
	for _, p := range c.parts {
		b.until = time.Now().Add(time.Duration(p.minutes * float64(time.Minute)))
		err = errors.Join(err, b.part(ctx, p.name))
	}
	return err
}

func partNames() string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	for _, c := range calls {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// Result is the result of a check.
type Result struct {
	Check   string
	State   string // ok; failed: a value is wrong; error: it could not be measured; not run; unfinished: it still ran
	Why     string `json:",omitempty"`
	Seconds float64
	Notes   []string   `json:",omitempty"`
	Columns []string   `json:",omitempty"` // header of the table
	Rows    [][]string `json:",omitempty"`
	Raw     any        `json:",omitempty"` // all figures, for JSON
}

// Part is the recorded result of a part.
type Part struct {
	Part, About, Began string
	Tiny               bool `json:",omitempty"` // small shapes for an emulated GPU: not a measurement
	Results            []Result
}

// fault is the error of a check that measured a wrong value.
type fault struct{ error }

func faultf(format string, args ...any) error { return fault{fmt.Errorf(format, args...)} }

// note adds a line to the notes.
func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// row adds a row to the table.
func (r *Result) row(cells ...string) { r.Rows = append(r.Rows, cells) }

// part runs a part's checks one after the other, and writes all results after each.
func (b *bench) part(ctx context.Context, name string) error {
	at := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
	if at < 0 {
		return fmt.Errorf("unknown part %s: use one of %s", name, partNames())
	}
	if err := os.MkdirAll(b.out, 0o777); err != nil {
		return err
	}
	b.env = environment(ctx, b.python, b.tiny)
	p, bad := parts[at], 0
	done := Part{Part: p.name, About: p.about, Began: time.Now().UTC().Format(time.RFC3339), Tiny: b.tiny}
	for _, c := range p.checks {
		if b.only != "" && b.only != c.name {
			continue
		}
		done.Results = append(done.Results, Result{Check: c.name, State: "unfinished"})
		r := &done.Results[len(done.Results)-1]
		b.save = func() error { return done.write(b.out) }
		b.check(ctx, c, r)
		if r.State != "ok" {
			bad++
		}
		fmt.Printf("%-8s %-16s %-8s %6.1f s  %s\n", p.name, r.Check, r.State, r.Seconds, firstLine(r.Why))
		if err := done.write(b.out); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d checks of %s are not ok", bad, len(done.Results), name)
	}
	return nil
}

// check runs a check within its time limit and the part's.
func (b *bench) check(ctx context.Context, c check, r *Result) {
	limit := min(c.limit, time.Until(b.until))
	if limit < 5*time.Second {
		r.State, r.Why = "not run", "the part's time was up"
		return
	}
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	start := time.Now()
	defer func() {
		if x := recover(); x != nil {
			r.State, r.Why = "error", fmt.Sprint("panic: ", x)
		}
		r.Seconds = time.Since(start).Seconds()
	}()
	err := c.run(ctx, b, r)
	switch f := (fault{}); {
	case err == nil:
		r.State = "ok"
	case errors.As(err, &f):
		r.State, r.Why = "failed", err.Error()
	default:
		r.State, r.Why = "error", err.Error()
		if ctx.Err() != nil {
			r.Why = fmt.Sprintf("stopped after %.0f s: %s", limit.Seconds(), r.Why)
		}
	}
}

// write writes the part's JSON and its page into a folder.
func (p *Part) write(dir string) error {
	text, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return fmt.Errorf("results of %s: %w", p.Part, err)
	}
	if err := os.WriteFile(filepath.Join(dir, p.Part+".json"), append(text, '\n'), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, p.Part+".md"), p.page(), 0o666)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
