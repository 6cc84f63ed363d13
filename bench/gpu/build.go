package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Index describes what build compiled.
type Index struct {
	Commit, Built, Arch string
	Models              []model
}

// smokeJob is the smallest program, for the CPU and for GPUs.
const smokeJob = `name: smoke
model: {model_type: gpt2, n_layer: 2, n_embd: 64, n_head: 2, vocab_size: 256, n_positions: 64, embd_pdrop: 0, resid_pdrop: 0, attn_pdrop: 0}
data: {train: [tokens.bin]}
train: {seq_len: 64, global_batch: 8, steps: 10, precision: bf16, on_nonfinite: stop}
cluster: {node: dgx-h200, devices: 1}
`

// build compiles the programs of all models into the folder. The working directory contains planc's source.
func (b *bench) build(ctx context.Context, arch string) error {
	if err := os.MkdirAll(b.dir, 0o777); err != nil {
		return err
	}
	b.env = os.Environ()
	planc := filepath.Join(b.dir, "planc")
	if _, err := b.output(ctx, nil, "go", "build", "-trimpath", "-o", planc, "./cmd/planc"); err != nil {
		return err
	}
	defer os.Remove(planc)
	x := Index{Built: time.Now().UTC().Format(time.RFC3339), Arch: arch}
	if out, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		x.Commit = strings.TrimSpace(string(out))
	}
	for _, target := range []string{"cpu", "cuda"} {
		if err := b.compile(ctx, planc, program{"smoke", smokeJob, target, "smoke-" + target}); err != nil {
			return err
		}
	}
	for _, m := range models {
		if b.tiny && !m.Tiny {
			continue
		}
		if err := b.model(ctx, planc, &m); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		x.Models = append(x.Models, m)
		for _, p := range m.Programs {
			fmt.Printf("%-16s micro-batch %d of %d, predicted for %s: %.4f s, %.1f GiB\n", m.Name, p.Micro, m.Batch,
				p.Node, p.Step, gib(p.Bytes))
		}
	}
	text, err := json.MarshalIndent(x, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.dir, "index.json"), append(text, '\n'), 0o666)
}

// program is what planc compiles.
type program struct {
	name   string // of the job
	job    string // its text
	target string // cpu or cuda
	binary string // name of the binary
}

// compile builds a program.
func (b *bench) compile(ctx context.Context, planc string, p program, flags ...string) error {
	file := filepath.Join(b.dir, p.name+".yaml")
	if err := os.WriteFile(file, []byte(p.job), 0o666); err != nil {
		return err
	}
	lock := strings.TrimSuffix(file, ".yaml") + ".lock"
	if err := os.RemoveAll(lock); err != nil { // of an older planc
		return err
	}
	_, err := b.output(ctx, nil, planc, append([]string{"compile", file, "--target", p.target, "-o",
		filepath.Join(b.dir, p.binary)}, flags...)...)
	return err
}

// model compiles a model's programs. A node whose plan is that of the first one uses the first one's program.
func (b *bench) model(ctx context.Context, planc string, m *model) error {
	var first planned
	for i, node := range nodes {
		p, err := b.plan(ctx, planc, m.Name+"-"+node, m.job(node))
		if err != nil {
			return err
		}
		c := compiled{Node: node, Binary: "train-" + m.Name, Micro: p.Plan.Micro, Step: p.Predict.Step,
			Bytes: p.Predict.Memory.Total}
		switch {
		case i == 0:
			first, m.Params = p, p.Model.Params
			err = b.modelProgram(ctx, planc, m, c)
		case p.Plan != first.Plan:
			c.Binary += "-" + node
			err = b.compile(ctx, planc, program{m.Name + "-" + node, m.job(node), "cuda", c.Binary})
		}
		if err != nil {
			return err
		}
		m.Programs = append(m.Programs, c)
	}
	return nil
}

// modelProgram compiles the program for the first node, and its fused groups if they are timed.
func (b *bench) modelProgram(ctx context.Context, planc string, m *model, c compiled) error {
	emitted, err := os.MkdirTemp("", "planc-gpu-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(emitted)
	if err := b.compile(ctx, planc, program{m.Name, m.job(c.Node), "cuda", c.Binary}, "--emit",
		filepath.Join(emitted, m.Name)); err != nil || !m.chained() {
		return err
	}
	return b.writeChains(m.Name, filepath.Join(emitted, m.Name))
}

// planned is the part of the output of planc plan --json that is used.
type planned struct {
	Model struct{ Params float64 }
	Plan  struct {
		Micro           int    `json:"micro_batch"`
		Recompute       string `json:"recompute"`
		RecomputeLayers int    `json:"recompute_layers"`
		RecomputeEvery  int    `json:"recompute_every"`
		RecomputeSplit  bool   `json:"recompute_split"`
	}
	Predict struct {
		Step   float64               `json:"step_s"`
		Memory struct{ Total int64 } `json:"memory_bytes"`
	}
}

// plan returns planc's plan for a job, which has no lock.
func (b *bench) plan(ctx context.Context, planc, name, job string) (p planned, err error) {
	file := filepath.Join(b.dir, name+".yaml")
	defer os.Remove(file)
	if err := os.WriteFile(file, []byte(job), 0o666); err != nil {
		return p, err
	}
	out, err := b.output(ctx, nil, planc, "plan", "--json", file)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(out, &p); err != nil {
		return p, fmt.Errorf("planc plan --json: %w", err)
	}
	return p, nil
}

// index reads the Index that build wrote.
func (b *bench) index() (x Index, err error) {
	text, err := os.ReadFile(filepath.Join(b.dir, "index.json"))
	if err != nil {
		return x, err
	}
	return x, json.Unmarshal(text, &x)
}
