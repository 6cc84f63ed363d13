package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/planc-dev/planc/bench/gpu/trial"
)

// Law2Case has PyTorch's f64 results of a fixture under planc's names: losses and gradient norms of three steps, the
// loss after them, the first gradient with its norm, and the final parameters with the distance that each moved.
// golden/laws/gpuchecklaw2_test.go writes them to law2.json.
type Law2Case struct {
	ID, Plan      string
	Losses, Norms []float64
	Valid, Norm   float64
	Grads, Params map[string][]float64
	Moved         map[string]float64
}

// trace is a line that the program law2 prints.
type trace struct {
	ID, Err       string
	Losses, Norms []float64
	Valid         float64
	Grads, Params map[string][]float64
}

// law2Bound is the relative bound, law 1's in f64. Losses and norms are relative to themselves. A tensor is relative
// to its norm or the distance it moved, but at least to tiny times that of all tensors.
const law2Bound, tiny = 1e-10, 1e-5

// rounding times the gradient's norm bounds a gradient that is mathematically zero, such as that of a key bias
// without rotary positions. Adam turns such a gradient into steps. They are compared with the distance that all
// parameters moved.
const rounding = 1e-12

// judge returns the largest errors of scalars and of tensors, and the tensor with the largest one.
func (c *Law2Case) judge(got *trace) (scalars, tensors float64, worst string) {
	for _, x := range []struct {
		got, want []float64
	}{{got.Losses, c.Losses}, {got.Norms, c.Norms}, {[]float64{got.Valid}, []float64{c.Valid}}} {
		scalars = max(scalars, apart(x.got, x.want, 0))
	}
	var moved float64
	for _, m := range c.Moved {
		moved += m * m
	}
	for kind, x := range map[string]struct {
		got, want map[string][]float64
	}{"gradient of ": {got.Grads, c.Grads}, "": {got.Params, c.Params}} {
		for name, want := range x.want {
			size := max(norm(want), tiny*c.Norm)
			if kind == "" {
				size = max(c.Moved[name], tiny*math.Sqrt(moved))
				if norm(c.Grads[name]) <= rounding*c.Norm {
					size = math.Sqrt(moved)
				}
			}
			if off := apart(x.got[name], want, size); off >= tensors {
				tensors, worst = off, kind+name
			}
		}
	}
	return scalars, tensors, worst
}

func norm(v []float64) float64 {
	var n float64
	for _, x := range v {
		n += x * x
	}
	return math.Sqrt(n)
}

// apart returns the distance of numbers relative to a size; size 0 stands for the norm of the wanted numbers. It
// returns [trial.NotANumber] if some are missing or are not numbers. Additional numbers are padding.
func apart(got, want []float64, size float64) float64 {
	if len(got) < len(want) {
		return trial.NotANumber
	}
	if size == 0 {
		size = norm(want)
	}
	var d float64
	for i := range want {
		d += (got[i] - want[i]) * (got[i] - want[i])
	}
	if x := math.Sqrt(d) / max(size, 1e-300); x < trial.NotANumber {
		return x
	}
	return trial.NotANumber
}

// pytorch checks law 2: the fixtures' programs on the GPU, with ranks that share it, compute PyTorch's results.
func pytorch(ctx context.Context, b *bench, r *Result) error {
	text, err := os.ReadFile(b.program("law2.json"))
	if err != nil {
		return err
	}
	var cases []Law2Case
	if err := json.Unmarshal(text, &cases); err != nil {
		return fmt.Errorf("law2.json: %w", err)
	}
	dir, remove, err := scratch()
	if err != nil {
		return err
	}
	defer remove()
	if err := os.Symlink(b.program("law2data"), filepath.Join(dir, "law2data")); err != nil {
		return err
	}
	var out, printed bytes.Buffer
	cmd := b.process(ctx, []string{"PLANC_SHARE_GPU=1"}, b.program("law2"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &printed
	runErr := cmd.Run()
	var traces []trace
	for line := range bytes.Lines(out.Bytes()) {
		var t trace
		if json.Unmarshal(line, &t) == nil {
			traces = append(traces, t)
		}
	}
	if err := tabulateLaw2(r, cases, traces); err != nil || runErr == nil {
		return err
	}
	return fmt.Errorf("law2: %w\n%s", runErr, tail(printed.String(), 2000))
}

// tabulateLaw2 writes the table.
func tabulateLaw2(r *Result, cases []Law2Case, traces []trace) error {
	r.Columns = []string{"fixture and plan", "error of losses and norms", "error of tensors", "worst tensor"}
	bad, why := 0, ""
	for i := range traces {
		if i >= len(cases) || traces[i].ID != cases[i].ID {
			return fmt.Errorf("program %d is %s, which is not the expected one", i, traces[i].ID)
		}
		c, got := &cases[i], &traces[i]
		if got.Err != "" {
			bad++
			why += "; " + c.Plan + ": " + tail(got.Err, 300)
			r.row(c.Plan, "-", "-", tail(got.Err, 300))
			continue
		}
		scalars, tensors, worst := c.judge(got)
		if !(scalars <= law2Bound) || !(tensors <= law2Bound) {
			bad++
			why += fmt.Sprintf("; %s: %.3g, %.3g by %s", c.Plan, scalars, tensors, worst)
		}
		r.row(c.Plan, fmt.Sprintf("%.2g", scalars), fmt.Sprintf("%.2g", tensors), worst)
	}
	switch {
	case bad > 0:
		return faultf("%d of %d programs differ from PyTorch%s", bad, len(cases), why)
	case len(traces) < len(cases):
		return fmt.Errorf("%d of %d programs ran to their end", len(traces), len(cases))
	}
	return nil
}
