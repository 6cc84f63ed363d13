package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// peakFlops is an H200's dense bf16 peak, to which all shares are relative.
const peakFlops = 989e12

// rounds is the number of turns of each side.
const rounds = 2

// training returns a check for each model.
func training(names ...string) (out []check) {
	for _, name := range names {
		out = append(out, check{name, 5 * time.Minute, func(ctx context.Context, b *bench, r *Result) error {
			return b.train(ctx, r, name)
		}})
	}
	return out
}

// Side is the result of one of the two sides.
type Side struct {
	Step   float64 // median seconds over all turns
	Took   []float64
	Turns  []float64 // medians
	First  float64   // seconds from the process's start to the end of its first step, the smallest of its turns
	Bytes  int64     // largest device memory in use, minus that before
	Micro  int
	Losses []float64 `json:",omitempty"`
}

func (s *Side) add(took []float64) {
	s.Took, s.Turns = append(s.Took, took...), append(s.Turns, median(took))
	s.Step = median(s.Took)
}

// Trained is a row of the benchmark.
type Trained struct {
	Model     model
	Ours      Side
	Theirs    Side
	Peer      peerReady
	SameBytes int64 // PyTorch's allocator at planc's micro-batch
}

// train lets both sides train a model in turns.
func (b *bench) train(ctx context.Context, r *Result, name string) error {
	if b.tiny {
		name = tinyOf(name)
	}
	x, err := b.index()
	if err != nil {
		return err
	}
	m, ok := modelNamed(x.Models, name)
	if !ok {
		return fmt.Errorf("build compiled no program for %s", name)
	}
	t := Trained{Model: m}
	defer func() { t.tabulate(r) }()
	tokens := b.program(fmt.Sprintf("tokens-%d.bin", m.Vocab))
	if err := writeTokens(tokens, 1<<21, m.Vocab); err != nil {
		return err
	}
	idle := b.memory(ctx)
	first, err := b.ours(ctx, &m, tokens, 4, idle) // alone, so that all device memory in use is planc's
	if err != nil {
		return err
	}
	t.Ours.First, t.Ours.Bytes, t.Ours.Micro = first.First, first.Bytes, m.Micro
	n := min(max(int(4/median(first.Took)), 5), 200) // about four seconds
	if b.tiny {
		n = 4
	}
	p, err := b.startPeer(ctx, b.peerOf(&m, tokens))
	if err != nil {
		return err
	}
	defer p.stop()
	if err := p.answer(&t.Peer); err != nil {
		return err
	}
	t.Theirs.First, t.Theirs.Micro = t.Peer.First, t.Peer.Micro
	for _, tried := range t.Peer.Tried {
		if tried.Micro == m.Micro {
			t.SameBytes = tried.Bytes
		}
		if tried.Micro == t.Peer.Micro {
			t.Theirs.Bytes = tried.Bytes
		}
	}
	for range rounds {
		took, err := p.turn(n)
		if err != nil {
			return err
		}
		t.Theirs.add(took)
		turn, err := b.ours(ctx, &m, tokens, n+2, -1)
		if err != nil {
			return err
		}
		t.Ours.add(turn.Took)
		t.Ours.First = min(t.Ours.First, turn.First)
	}
	return nil
}

// peerOf returns the configuration of the peer for a model: planc's micro-batch first, then others.
func (b *bench) peerOf(m *model, tokens string) peerConfig {
	micros := []int{m.Micro}
	for _, n := range m.Micros {
		if !slices.Contains(micros, n) {
			micros = append(micros, n)
		}
	}
	return peerConfig{Model: *m, Micros: micros, Compile: !b.tiny, Precision: "bf16", Patience: 80, Batches: tokens,
		MemoryFraction: 0.5}
}

// ours starts planc's program and ends it after n steps, before it saves a checkpoint. Step times start with the
// third step. It measures the device's memory above idle, unless idle is -1.
func (b *bench) ours(ctx context.Context, m *model, tokens string, n int, idle int64) (s Side, err error) {
	dir, remove, err := scratch()
	if err != nil {
		return s, err
	}
	defer remove()
	steps, first, err := b.trainSteps(ctx, m, trainingRun{dir: dir, tokens: tokens, steps: n}, func() {
		if idle >= 0 {
			s.Bytes = max(s.Bytes, b.memory(ctx)-idle)
		}
	})
	if err != nil {
		return s, err
	}
	s.First = first
	for _, x := range steps {
		s.Losses = append(s.Losses, x.Loss)
		if x.Step > 2 {
			s.Took = append(s.Took, x.Took)
		}
	}
	if len(s.Took) == 0 {
		return s, fmt.Errorf("planc: %d steps, none to measure", len(steps))
	}
	return s, nil
}

// trainingRun is a run of a model's program: its folder, its data, its steps, and flags in addition.
type trainingRun struct {
	dir, tokens string
	steps       int
	flags       []string
}

// trainSteps runs a model's program until it has done the steps, and calls look between them.
func (b *bench) trainSteps(ctx context.Context, m *model, r trainingRun,
	look func()) (steps []step, first float64, err error) {
	dir, n := r.dir, r.steps
	args := append([]string{"--data", r.tokens, "--dir", dir, "--resume", "never"}, r.flags...)
	cmd := b.process(ctx, nil, b.program("train-"+m.Name), args...)
	printed := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = printed, printed
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return nil, 0, fmt.Errorf("planc ended after %d of %d steps: %v\n%s", len(steps), n, err,
				tail(printed.String(), 2000))
		case <-tick.C:
		}
		steps, _ = readSteps(filepath.Join(dir, "metrics.jsonl"))
		if len(steps) > 0 { // missing at first
			look()
		}
		if len(steps) >= n {
			_ = cmd.Cancel()
			<-ended
			return steps[:n], steps[0].T - float64(start.UnixNano())/1e9, nil
		}
	}
}

// memory returns the bytes of device memory in use, -1 without nvidia-smi.
func (b *bench) memory(ctx context.Context) int64 {
	out, err := b.output(ctx, nil, "nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0")
	var mib int64
	if err == nil {
		_, err = fmt.Sscan(string(out), &mib)
	}
	if err != nil {
		return -1
	}
	return mib << 20
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// tell writes the table.
func (t *Trained) tabulate(r *Result) {
	r.Raw, r.Columns = t, []string{"measure", "planc", "PyTorch", "planc / PyTorch"}
	m := &t.Model
	tokens := float64(m.Batch * m.Seq)
	ratio := func(a, b float64) string {
		if a == 0 || b == 0 {
			return "-"
		}
		return fmt.Sprintf("%.3f", a/b)
	}
	r.row("micro-batch", fmt.Sprint(t.Ours.Micro), fmt.Sprint(t.Theirs.Micro), "")
	r.row("step, s", show("%.5f", t.Ours.Step), show("%.5f", t.Theirs.Step), ratio(t.Ours.Step, t.Theirs.Step))
	r.row("tokens/s", per("%.0f", tokens, t.Ours.Step), per("%.0f", tokens, t.Theirs.Step), ratio(t.Theirs.Step,
		t.Ours.Step))
	flops := tokens * m.flopsPerToken() / peakFlops * 100
	r.row("MFU at 989 TFLOP/s, %", per("%.1f", flops, t.Ours.Step), per("%.1f", flops, t.Theirs.Step), "")
	r.row("peak device memory, GiB", show("%.2f", gib(t.Ours.Bytes)), show("%.2f", gib(t.Theirs.Bytes)),
		ratio(float64(t.Ours.Bytes), float64(t.Theirs.Bytes)))
	r.row("the same at planc's micro-batch", "", show("%.2f", gib(t.SameBytes)), ratio(float64(t.Ours.Bytes),
		float64(t.SameBytes)))
	r.row("start to first step, s", show("%.2f", t.Ours.First), show("%.2f", t.Theirs.First), ratio(t.Ours.First,
		t.Theirs.First))
	r.note("%d sequences of %d tokens per step, %.4g parameters; medians of %d and %d steps in %d turns each", m.Batch,
		m.Seq, m.Params, len(t.Ours.Took), len(t.Theirs.Took), rounds)
	r.note("predicted step %.5f s, measured %s (predicted / measured %s); predicted memory %.2f GiB, measured %s (%s)",
		m.PredictedStep, show("%.5f", t.Ours.Step),
		ratio(m.PredictedStep, t.Ours.Step), gib(m.PredictedBytes), show("%.2f", gib(t.Ours.Bytes)),
		ratio(float64(m.PredictedBytes), float64(t.Ours.Bytes)))
	r.note("medians of the turns, s: planc %.5f, PyTorch %.5f", t.Ours.Turns, t.Theirs.Turns)
	if why := t.Peer.Eager; why != "" {
		r.note("PyTorch runs without torch.compile, which failed: %s", strings.Join(strings.Fields(why), " "))
	}
	for _, x := range t.Peer.Tried {
		r.note("PyTorch with micro-batches of %d: %s s, %s GiB %s", x.Micro, show("%.5f", x.Step),
			show("%.2f", gib(x.Bytes)), tail(x.Failed, 200))
	}
}

func gib(n int64) float64 { return float64(n) / (1 << 30) }

// show formats a measured figure, and prints a dash for a missing one.
func show(format string, x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf(format, x)
}

func per(format string, x, seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return fmt.Sprintf(format, x/seconds)
}
