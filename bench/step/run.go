package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// compare runs both sides in alternating rounds.
func compare(dir string, m model, g *gauge) (*result, error) {
	bin, err := build(dir, m)
	if err != nil {
		return nil, err
	}
	n := stepsOf(m)
	var p *peer
	if *mode != "none" {
		p, err = startPeer(m)
		if err != nil {
			return nil, err
		}
		defer p.stop()
	}
	r := &result{}
	for range *rounds {
		var took []float64
		around, err := g.measureAround(func() (err error) {
			took, err = r.run(dir, bin, m, n)
			return err
		})
		if err != nil {
			return nil, err
		}
		r.ours, r.oursMedians, r.limits = append(r.ours, took...), append(r.oursMedians, median(took)),
			append(r.limits, around.best)
		r.sustained = append(r.sustained, around.sustained)
		if p == nil {
			continue
		}
		took, err = p.run(n)
		if err != nil {
			return nil, err
		}
		r.peer, r.peerMedians = append(r.peer, took...), append(r.peerMedians, median(took))
		r.peerRSS = p.rss
	}
	return r, nil
}

// stepsOf returns the number of steps in a round.
func stepsOf(m model) int {
	if *steps > 0 {
		return *steps
	}
	return int(2/(m.flops()/200e9)) + 3
}

// build compiles the model's job and returns the binary.
func build(dir string, m model) (string, error) {
	job, bin := filepath.Join(dir, m.name+".yaml"), filepath.Join(dir, m.name)
	if err := os.WriteFile(job, []byte(m.job(1_000_000)), 0o666); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "run", "./cmd/planc", "compile", job, "-o", bin).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("planc compile %s: %w\n%s", job, err, out)
	}
	return bin, nil
}

// run trains n steps from the start and returns their seconds, without the first two.
func (r *result) run(dir, bin string, m model, n int) (took []float64, err error) {
	runs := filepath.Join(dir, m.name+".run")
	if err := os.RemoveAll(runs); err != nil {
		return nil, err
	}
	cmd := exec.Command(bin, "--dir", runs, "--steps", fmt.Sprint(n+2), "--threads",
		fmt.Sprint(max(1, *threads/m.ranks)), "--cpu-isa", *isa,
		"--checkpoint-every", "1000000")
	cmd.Env = append(os.Environ(), fmt.Sprint("GOMAXPROCS=", *threads))
	cmd.Dir = dir
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", bin, err, out)
	}
	r.rss = max(r.rss, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10)
	return r.read(filepath.Join(runs, "metrics.jsonl"), start)
}

// read returns the steps' seconds from a run's log.
func (r *result) read(path string, start time.Time) (took []float64, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var s struct {
			T    float64 // seconds since 1970
			Step int
			Took float64 `json:"step_s"`
		}
		if json.Unmarshal(line, &s) != nil || s.Took == 0 {
			continue
		}
		if s.Step == 1 {
			if first := s.T - float64(start.UnixNano())/1e9; r.first == 0 || first < r.first {
				r.first = first
			}
		}
		if s.Step > 2 {
			took = append(took, s.Took)
		}
	}
	return took, nil
}

// peer is a process of peer.py that waits for its rounds.
type peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	rss int64 // peak, minus that of an idle process
}

func startPeer(m model) (*peer, error) {
	config, err := json.Marshal(map[string]any{"layers": m.layers, "heads": m.heads, "kv_heads": m.kvHeads,
		"hidden": m.hidden, "ffn": m.ffn,
		"vocab": m.vocab, "block": m.block, "batch": m.batch, "llama": m.llama, "precision": m.precision,
		"ranks":   m.ranks,
		"threads": max(1, *threads/m.ranks), "mode": *mode})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(*python, "bench/step/peer.py", string(config))
	cmd.Env = peerEnv(max(1, *threads/m.ranks))
	cmd.Stderr = os.Stderr
	p := &peer{cmd: cmd}
	p.in, err = cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, cmd.Start()
}

// peerEnv returns the environment without variables that select slower kernels, with as many threads as planc. The
// threads sleep while they wait, so that two pools on the same cores do not spin against each other.
func peerEnv(threads int) (env []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OPENBLAS_") && !strings.HasPrefix(v, "MKL_") && !strings.HasPrefix(v, "OMP_") {
			env = append(env, v)
		}
	}
	return append(env, fmt.Sprint("OMP_NUM_THREADS=", threads), "OMP_WAIT_POLICY=passive")
}

// run asks for n steps.
func (p *peer) run(n int) ([]float64, error) {
	if _, err := fmt.Fprintln(p.in, n); err != nil {
		return nil, err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	var answer struct {
		Took []float64
		RSS  int64
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, fmt.Errorf("unexpected output of peer.py, %q: %w", line, err)
	}
	p.rss = answer.RSS
	return answer.Took, nil
}

func (p *peer) stop() {
	p.in.Close()
	p.cmd.Wait()
}
