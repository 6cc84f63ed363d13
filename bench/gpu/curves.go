package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
)

// curveSteps is the number of steps over which losses are compared.
const curveSteps = 200

// curves trains the 124M model on the same data from the same weights: once by planc and three times by PyTorch, in
// f32 and twice under autocast to bf16. It compares planc's distance from f32 with PyTorch's own.
func curves(ctx context.Context, b *bench, r *Result) error {
	name, steps := "curve", curveSteps
	if b.tiny {
		name, steps = "tiny", 6
	}
	x, err := b.index()
	if err != nil {
		return err
	}
	m, ok := modelNamed(x.Models, name)
	if !ok {
		return fmt.Errorf("build compiled no program for %s", name)
	}
	binary := m.programFor(gpuName(ctx, b)).Binary
	dir, remove, err := scratch()
	if err != nil {
		return err
	}
	defer remove()
	tokens, batches, weights := filepath.Join(dir, "tokens.bin"), filepath.Join(dir, "batches.bin"),
		filepath.Join(dir, "weights")
	if err := writeTokens(tokens, steps*m.Batch*m.Seq+1, m.Vocab); err != nil {
		return err
	}
	if err := writeBatches(batches, tokens, &m, steps); err != nil {
		return err
	}
	if _, err := b.output(ctx, nil, b.program(binary), "--data", tokens, "--dir", filepath.Join(dir,
		"export"), "--resume", "never", "--export", weights); err != nil {
		return err
	}
	c := map[string][]float64{}
	r.Raw = c
	ours, _, err := b.trainSteps(ctx, trainingRun{binary: binary, dir: filepath.Join(dir, "run"), tokens: tokens,
		steps: steps, flags: []string{"--set", "train.init=" + weights}}, func() {})
	if err != nil {
		return err
	}
	for _, s := range ours {
		c["planc"] = append(c["planc"], s.Loss)
	}
	for run, precision := range map[string]string{"f32": "f32", "bf16": "bf16", "bf16 again": "bf16"} {
		c[run], err = b.peerCurve(ctx, &m, precision, batches, weights, steps)
		if err != nil {
			return fmt.Errorf("%s: %w", run, err)
		}
	}
	return tabulateCurves(r, c, steps)
}

// peerCurve returns PyTorch's losses.
func (b *bench) peerCurve(ctx context.Context, m *model, precision, batches, weights string,
	steps int) (losses []float64, err error) {
	p, err := b.startPeer(ctx, peerConfig{Model: *m, Micros: []int{m.Batch}, Precision: precision, Batches: batches,
		Weights: weights, Steps: steps})
	if err != nil {
		return nil, err
	}
	defer p.stop()
	if err := p.answer(&losses); err != nil {
		return nil, err
	}
	if len(losses) != steps {
		return nil, fmt.Errorf("PyTorch trained %d steps, want %d", len(losses), steps)
	}
	return losses, nil
}

// tabulateCurves compares the curves: the largest distance, and the root mean square over all steps. It returns an
// error if planc is farther from PyTorch in f32 than twice PyTorch's own error in bf16.
func tabulateCurves(r *Result, c map[string][]float64, steps int) error {
	r.Columns = []string{"", "largest, nats", "root mean square"}
	addDistanceRow := func(what, a, b string) (largest float64) {
		sum := 0.0
		for i := range c[a] {
			d := math.Abs(c[a][i] - c[b][i])
			largest = max(largest, d)
			if d != d {
				largest = math.Inf(1)
			}
			sum += d * d
		}
		r.row(what, fmt.Sprintf("%.5f", largest), fmt.Sprintf("%.5f", math.Sqrt(sum/float64(len(c[a])))))
		return largest
	}
	rounding := addDistanceRow("PyTorch bf16 from PyTorch f32", "bf16", "f32")
	rerun := addDistanceRow("PyTorch bf16 from itself again", "bf16", "bf16 again")
	ours := addDistanceRow("planc bf16 from PyTorch f32", "planc", "f32")
	addDistanceRow("planc bf16 from PyTorch bf16", "planc", "bf16")
	for i := 0; i < steps; i += max(steps/10, 1) {
		r.note("step %d: planc %.5f, PyTorch f32 %.5f, bf16 %.5f", i+1, c["planc"][i], c["f32"][i], c["bf16"][i])
	}
	// Both round every forward matmul to bf16, so their errors should be of the same order. The bound is twice
	// PyTorch's own error.
	if bound := 2*max(rounding, rerun) + 1e-3; !(ours <= bound) {
		return faultf("planc is up to %.4g nats from f32, more than %.4g", ours, bound)
	}
	return nil
}
