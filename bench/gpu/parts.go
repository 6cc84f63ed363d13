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

// check is a measurement, which has a time of its own.
type check struct {
	name  string
	limit time.Duration
	run   func(ctx context.Context, b *bench, r *Result) error
}

// part is what one command does on the GPU's machine, the most telling check first.
type part struct {
	name, about string
	checks      []check
}

// parts are all, in the order in which they are worth a GPU's time.
var parts = []part{
	{"smoke", "Whether a step runs, with which libraries", []check{
		{"machine", 2 * time.Minute, machine}, // PyTorch is read from disk for the first time,
		{"losses", 2 * time.Minute, smoke},
		{"two runs", 2 * time.Minute, twoRuns},
		{"NCCL", 2 * time.Minute, ncclAlone},
		{"sanitizer", 3 * time.Minute, sanitizer},
	}},
	{"laws", "Every plan kind against one rank on the CPU, ranks sharing the GPU", []check{
		{"law 1", 5 * time.Minute, laws},
		{"law 3", time.Minute, arenas},
		{"law 2", 2 * time.Minute, pytorch},
		{"law 1 by NCCL", 2 * time.Minute, lawsByNCCL},
	}},
	{"train", "Training beside PyTorch: the smallest and the largest GPT-2", training("gpt2-124m", "gpt2-1558m")},
	{"kernels", "Each kernel's error against f64, and its time against its floor", []check{
		{"ceilings", time.Minute, kernelChecks("ceiling")},
		{"products", 2 * time.Minute, kernelChecks("product")},
		{"8-bit products", 2 * time.Minute, kernelChecks("eight")},
		{"fused groups", 2 * time.Minute, kernelChecks("chain")},
		{"attention", 2 * time.Minute, kernelChecks("attention")},
		{"kernels", 3 * time.Minute, kernelChecks("kernel")},
	}},
	{"sanitize", "NVIDIA's compute-sanitizer over kernels and plans of all kinds", []check{
		{"memcheck", 3 * time.Minute, sanitize("memcheck")},
		{"racecheck", 3 * time.Minute, sanitize("racecheck")},
		{"synccheck", 2 * time.Minute, sanitize("synccheck")},
	}},
	{"curves", "200 steps beside PyTorch, from the same weights on the same data", []check{
		{"loss curve", 8 * time.Minute, curves},
	}},
	{"train2", "Training beside PyTorch: the models between", training("gpt2-350m", "gpt2-774m", "llama-1b")},
	{"train3", "Training beside PyTorch: sequences of 4096", training("gpt2-124m-4096", "llama-1b-4096")},
}

func partNames() string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// Result is what a check found out.
type Result struct {
	Check   string
	State   string // ok; failed: what was measured is not as it must be; error: it could not be measured; not run
	Why     string `json:",omitempty"`
	Seconds float64
	Notes   []string   `json:",omitempty"`
	Columns []string   `json:",omitempty"` // of a table for people
	Rows    [][]string `json:",omitempty"`
	Raw     any        `json:",omitempty"` // every figure
}

// Part is what is written of a part.
type Part struct {
	Part, About, Began string
	Tiny               bool `json:",omitempty"` // not a measurement: shapes for an emulated GPU
	Results            []Result
}

// fault is what a check reports that has measured something that must not be.
type fault struct{ error }

func faultf(format string, args ...any) error { return fault{fmt.Errorf(format, args...)} }

// note adds a line.
func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// row adds a row of the table.
func (r *Result) row(cells ...string) { r.Rows = append(r.Rows, cells) }

// part runs a part's checks one after the other, and writes down what there is after each.
func (b *bench) part(ctx context.Context, name string) error {
	at := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
	if at < 0 {
		return fmt.Errorf("there is no part %s, but %s", name, partNames())
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
		done.Results = append(done.Results, b.check(ctx, c))
		r := &done.Results[len(done.Results)-1]
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

// check runs one within its time and the part's.
func (b *bench) check(ctx context.Context, c check) (r Result) {
	r.Check = c.name
	limit := min(c.limit, time.Until(b.until))
	if limit < 5*time.Second {
		r.State, r.Why = "not run", "the part's time was up"
		return r
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
	err := c.run(ctx, b, &r)
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
	return r
}

// write puts the part's JSON and its page into a folder.
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
