package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// machine reports the GPU, driver, libraries and Python packages.
func machine(ctx context.Context, b *bench, r *Result) error {
	x, err := b.index()
	if err != nil {
		return err
	}
	r.note("programs of %s, built %s for sm_%s", x.Commit, x.Built, x.Arch)
	for _, ask := range [][]string{
		{"nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem,power.limit",
			"--format=csv,noheader"},
		{b.python, "-c", "import torch; print('PyTorch', torch.__version__, 'CUDA', torch.version.cuda, 'cuDNN', " +
			"torch.backends.cudnn.version(), 'NCCL', torch.cuda.nccl.version() if torch.cuda.is_available() " +
			"else None)"},
	} {
		out, err := b.output(ctx, nil, ask[0], ask[1:]...)
		if err != nil {
			r.note("`%s`: %s", ask[0], firstLine(err.Error()))
			continue
		}
		r.note("%s", strings.TrimSpace(string(out)))
	}
	out, err := b.kernels(ctx, "machine")
	r.Notes = append(r.Notes, out.Notes...)
	return err
}

// smoke compares the smallest program's losses on the GPU with the CPU's.
func smoke(ctx context.Context, b *bench, r *Result) error {
	want, _, err := b.smoke(ctx, "smoke-cpu")
	if err != nil {
		return err
	}
	got, _, err := b.smoke(ctx, "smoke-cuda")
	if err != nil {
		return err
	}
	if len(want) == 0 || len(got) != len(want) {
		return faultf("%d steps on the GPU, %d on the CPU", len(got), len(want))
	}
	r.Columns = []string{"step", "CPU", "GPU", "error"}
	worst := 0.0
	for i := range want {
		off := math.Abs(got[i]-want[i]) / want[i]
		worst = max(worst, off)
		if off != off {
			worst = math.Inf(1)
		}
		r.row(fmt.Sprint(i+1), fmt.Sprintf("%.6f", want[i]), fmt.Sprintf("%.6f", got[i]), fmt.Sprintf("%.2g", off))
	}
	r.Raw = map[string][]float64{"cpu": want, "gpu": got}
	const bound = 2e-3 // in bf16, over ten steps; on the emulated GPU they differ by 1e-4 after four
	if !(worst <= bound) {
		return faultf("losses differ from the CPU's by up to %.3g, more than %g", worst, bound)
	}
	return nil
}

// smoke runs the smallest program in a temporary folder and returns its losses, or its output if it failed.
func (b *bench) smoke(ctx context.Context, program string, wrap ...string) (losses []float64, output []byte,
	err error) {
	dir, remove, err := scratch()
	if err != nil {
		return nil, nil, err
	}
	defer remove()
	tokens := filepath.Join(dir, "tokens.bin")
	if err := writeTokens(tokens, 1<<14, 256); err != nil {
		return nil, nil, err
	}
	args := slices.Concat(wrap, []string{b.program(program), "--data", tokens, "--dir", dir, "--resume", "never"})
	if out, err := b.output(ctx, nil, args[0], args[1:]...); err != nil {
		return nil, out, err
	}
	steps, err := readSteps(filepath.Join(dir, "metrics.jsonl"))
	for _, s := range steps {
		losses = append(losses, s.Loss)
	}
	return losses, nil, err
}

// twoRuns checks that the smallest program gives the same bits twice.
func twoRuns(ctx context.Context, b *bench, r *Result) error {
	var runs [2][]float64
	for i := range runs {
		var err error
		runs[i], _, err = b.smoke(ctx, "smoke-cuda")
		if err != nil {
			return err
		}
	}
	if len(runs[0]) == 0 || !slices.Equal(runs[0], runs[1]) {
		return faultf("losses %v, and %v in a second run of the same program", runs[0], runs[1])
	}
	r.note("%d losses have the same bits in both runs", len(runs[0]))
	return nil
}

// ncclAlone runs each NCCL collective in a communicator of one rank.
func ncclAlone(ctx context.Context, b *bench, r *Result) error {
	out, err := b.kernels(ctx, "nccl")
	r.Notes = append(r.Notes, out.Notes...)
	return err
}

// sanitizers are the tools of compute-sanitizer.
var sanitizers = []string{"memcheck", "racecheck", "synccheck", "initcheck"}

// sanitizer runs the smallest program under compute-sanitizer, if it is installed.
func sanitizer(ctx context.Context, b *bench, r *Result) error {
	tool := b.sanitizerTool()
	if tool == "" {
		r.note("compute-sanitizer is not installed")
		return nil
	}
	r.Columns = []string{"tool", "result"}
	bad, broken := 0, 0
	for _, kind := range sanitizers {
		_, out, err := b.smoke(ctx, "smoke-cuda", sanitizing(tool, kind)...)
		says, found := judged(out, err)
		if found {
			bad++
		} else if err != nil {
			broken++
		}
		r.row(kind, says)
	}
	switch {
	case bad > 0:
		return faultf("%d of %d compute-sanitizer tools reported errors", bad, len(sanitizers))
	case broken > 0:
		return fmt.Errorf("%d of %d compute-sanitizer tools failed to run", broken, len(sanitizers))
	}
	return nil
}

// step is a line of metrics.jsonl.
type step struct {
	T    float64 // seconds since 1970
	Step int
	Loss float64
	Took float64 `json:"step_s"`
}

// readSteps reads the steps of a run's log, whose last line may be incomplete.
func readSteps(path string) (steps []step, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var s step
		if json.Unmarshal(line, &s) == nil && s.Took > 0 {
			steps = append(steps, s)
		}
	}
	return steps, nil
}
