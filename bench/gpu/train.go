package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// peakFlops is the dense bf16 peak of an H100 SXM and of an H200, to which all shares are relative.
const peakFlops = 989e12

// rounds is the number of turns of PyTorch.
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
	Step   float64   // median of the turns
	Turns  []float64 // mean seconds of a step
	Steps  int       // of all turns
	First  float64   // seconds from the process's start to the end of its first step, the smallest of its turns
	Bytes  int64     // largest device memory in use, minus that before
	Micro  int
	Losses []float64 `json:",omitempty"`
}

// add adds a turn of n steps.
func (s *Side) add(took float64, n int) {
	s.Turns, s.Steps = append(s.Turns, took), s.Steps+n
	s.Step = median(s.Turns)
}

// Trained is a row of the benchmark.
type Trained struct {
	Model     model
	Program   compiled
	Ours      Side
	Chosen    Side // planc, with measured choices of how GEMMs are computed
	InTurn    Side // planc, with each kernel launched after the previous one has ended
	Theirs    Side
	Peer      peerReady
	SameBytes int64 // PyTorch's allocator at planc's micro-batch
}

// train lets both sides train a model: planc, then PyTorch, then planc again. Each has the device for itself. The first
// figures of planc are written before PyTorch starts.
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
	t := Trained{Model: m, Program: m.programFor(gpuName(ctx, b))}
	defer func() { t.tabulate(r) }()
	tokens := b.program(fmt.Sprintf("tokens-%d.bin", m.Vocab))
	if err := writeTokens(tokens, 1<<21, m.Vocab); err != nil {
		return err
	}
	first, err := b.ours(ctx, &t, tokens, 4)
	if err != nil {
		return err
	}
	t.Ours.First, t.Ours.Bytes, t.Ours.Micro = first.First, first.Bytes, t.Program.Micro
	n := min(max(int(4/first.Step), 5), 200) // about four seconds
	if b.tiny {
		n = 4
	}
	if err := t.ourTurn(ctx, b, tokens, n); err != nil {
		return err
	}
	t.tabulate(r)
	if err := b.save(); err != nil {
		return err
	}
	r.Rows, r.Notes = nil, nil
	if err := t.peerTurns(ctx, b, tokens, n); err != nil {
		return err
	}
	if err := t.ourTurn(ctx, b, tokens, n); err != nil {
		return err
	}
	if err := t.chosenTurn(ctx, b, tokens, n); err != nil {
		return err
	}
	return t.inTurn(ctx, b, tokens, n)
}

// inTurn adds a turn of planc in which no kernel begins before the previous one has ended.
func (t *Trained) inTurn(ctx context.Context, b *bench, tokens string, n int) error {
	turn, err := b.ours(ctx, t, tokens, n+2, "PLANC_PDL=0")
	if err != nil {
		return err
	}
	t.InTurn.add(turn.Step, n)
	return nil
}

// ourTurn adds a turn of planc.
func (t *Trained) ourTurn(ctx context.Context, b *bench, tokens string, n int) error {
	turn, err := b.ours(ctx, t, tokens, n+2)
	if err != nil {
		return err
	}
	t.Ours.add(turn.Step, n)
	t.Ours.First, t.Ours.Bytes = min(t.Ours.First, turn.First), max(t.Ours.Bytes, turn.Bytes)
	return nil
}

// chosenTurn measures how GEMMs are computed fastest, writes the choices into the folder of results, and adds a turn of
// planc that uses them.
func (t *Trained) chosenTurn(ctx context.Context, b *bench, tokens string, n int) error {
	file := "PLANC_GEMM_CHOICES=" + filepath.Join(b.out, t.choices())
	if _, err := b.ours(ctx, t, tokens, 3, file, "PLANC_TIME_PRODUCTS=1"); err != nil {
		return err
	}
	turn, err := b.ours(ctx, t, tokens, n+2, file)
	if err != nil {
		return err
	}
	t.Chosen.add(turn.Step, n)
	return nil
}

// choices is the name of the file of measured choices.
func (t *Trained) choices() string { return "gemms-" + t.Model.Name + ".json" }

// peerTurns adds the turns of PyTorch, in one process.
func (t *Trained) peerTurns(ctx context.Context, b *bench, tokens string, n int) error {
	p, err := b.startPeer(ctx, peerOf(b, t, tokens))
	if err != nil {
		return err
	}
	defer p.stop()
	if err := p.answer(&t.Peer); err != nil {
		return err
	}
	t.Theirs.First, t.Theirs.Micro = t.Peer.First, t.Peer.Micro
	for _, tried := range t.Peer.Tried {
		if tried.Micro == t.Program.Micro {
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
		t.Theirs.add(took, n)
	}
	return nil
}

// peerOf returns the configuration of the peer for a model: planc's micro-batch first, then others.
func peerOf(b *bench, t *Trained, tokens string) peerConfig {
	micros := []int{t.Program.Micro}
	for _, n := range t.Model.Micros {
		if !slices.Contains(micros, n) {
			micros = append(micros, n)
		}
	}
	return peerConfig{Model: t.Model, Micros: micros, Compile: !b.tiny, Precision: "bf16", Patience: 80,
		Batches: tokens}
}

// ours starts planc's program and ends it after n steps, before it saves a checkpoint. The mean of the steps starts
// with the third one. Device memory is the largest in use, minus that before.
func (b *bench) ours(ctx context.Context, t *Trained, tokens string, n int, env ...string) (s Side, err error) {
	dir, remove, err := scratch()
	if err != nil {
		return s, err
	}
	defer remove()
	idle := b.memory(ctx)
	steps, first, err := b.trainSteps(ctx, trainingRun{binary: t.Program.Binary, dir: dir, tokens: tokens,
		steps: n, env: env}, func() {
		if idle >= 0 {
			s.Bytes = max(s.Bytes, b.memory(ctx)-idle)
		}
	})
	if err != nil {
		return s, err
	}
	s.First = first
	sum := 0.0
	for _, x := range steps {
		s.Losses = append(s.Losses, x.Loss)
		if x.Step > 2 {
			sum, s.Steps = sum+x.Took, s.Steps+1
		}
	}
	if s.Steps == 0 {
		return s, fmt.Errorf("planc: %d steps, none to measure", len(steps))
	}
	s.Step = sum / float64(s.Steps)
	return s, nil
}

// trainingRun is a run of a program: its folder, its data, its steps, and flags and environment variables in addition.
type trainingRun struct {
	binary, dir, tokens string
	steps               int
	flags, env          []string
}

// trainSteps runs a program until it has done the steps, and calls look between them.
func (b *bench) trainSteps(ctx context.Context, r trainingRun, look func()) (steps []step, first float64, err error) {
	dir, n := r.dir, r.steps
	args := append([]string{"--data", r.tokens, "--dir", dir, "--resume", "never"}, r.flags...)
	cmd := b.process(ctx, r.env, b.program(r.binary), args...)
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

// gpuName returns the name of the first GPU, "" without nvidia-smi.
func gpuName(ctx context.Context, b *bench) string {
	out, err := b.output(ctx, nil, "nvidia-smi", "--query-gpu=name", "--format=csv,noheader", "--id=0")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
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

// tabulate writes the table. Without figures of PyTorch, its columns have dashes.
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
	p := t.Program
	r.note("%d sequences of %d tokens per step, %.4g parameters; %d and %d steps in %d and %d turns", m.Batch,
		m.Seq, m.Params, t.Ours.Steps, t.Theirs.Steps, len(t.Ours.Turns), len(t.Theirs.Turns))
	r.note("predicted for %s: step %.5f s, measured %s (predicted / measured %s); memory %.2f GiB, measured %s (%s)",
		p.Node, p.Step, show("%.5f", t.Ours.Step), ratio(p.Step, t.Ours.Step), gib(p.Bytes),
		show("%.2f", gib(t.Ours.Bytes)), ratio(float64(p.Bytes), float64(t.Ours.Bytes)))
	r.note("means of the turns, s: planc %.5f, PyTorch %.5f", t.Ours.Turns, t.Theirs.Turns)
	if t.Chosen.Step > 0 {
		r.note("with the choices of %s for GEMMs, which planc measured, a step takes %.5f s (divided by that without: "+
			"%s)", t.choices(), t.Chosen.Step, ratio(t.Chosen.Step, t.Ours.Step))
	}
	if t.InTurn.Step > 0 {
		r.note("with PLANC_PDL=0, where each kernel begins after the previous one has ended, a step takes %.5f s "+
			"(divided by that without: %s)", t.InTurn.Step, ratio(t.InTurn.Step, t.Ours.Step))
	}
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
