package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed peer.py
var peerSource []byte

// peer is a process of peer.py, which keeps its model on the GPU until it ends.
type peer struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	printed bytes.Buffer
}

// peerConfig is the configuration of peer.py.
type peerConfig struct {
	Model     model
	Micros    []int   // micro-batches to try; the fastest is used
	Compile   bool    // torch.compile
	Precision string  // bf16 (autocast) or f32
	Started   float64 // seconds since 1970
	Patience  float64 // seconds after which no other micro-batch is tried
	Batches   string  // file of sequences, for curves
	Weights   string  // folder of safetensors, for curves
	Steps     int     // length of a curve
}

// peerReady is the answer of peer.py after its first steps.
type peerReady struct {
	First float64 // seconds from Started to the end of its first step
	Micro int     // the fastest
	Tried []struct {
		Micro  int
		Step   float64
		Bytes  int64 // largest size that its allocator held
		Failed string
	}
	Device, Torch string
	Eager         string // why it trains without torch.compile; "" if it does not
}

// startPeer starts peer.py; answer reads its output.
func (b *bench) startPeer(ctx context.Context, want peerConfig) (*peer, error) {
	file := filepath.Join(b.dir, "peer.py")
	if err := os.WriteFile(file, peerSource, 0o666); err != nil {
		return nil, err
	}
	want.Started = float64(time.Now().UnixNano()) / 1e9
	config, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	var env []string
	if b.tiny { // the emulated libraries are not PyTorch's
		env = []string{"LD_LIBRARY_PATH="}
	}
	p := &peer{cmd: b.process(ctx, env, b.python, file, string(config))}
	p.cmd.Stderr = &p.printed
	p.in, err = p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// answer reads a line of JSON.
func (p *peer) answer(to any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.stop()
		return fmt.Errorf("PyTorch: %w\n%s", err, tail(p.printed.String(), 2000))
	}
	return json.Unmarshal(line, to)
}

// turn asks for n steps and returns the mean seconds of a step.
func (p *peer) turn(n int) (took float64, err error) {
	if _, err := fmt.Fprintln(p.in, n); err != nil {
		return 0, err
	}
	return took, p.answer(&took)
}

func (p *peer) stop() {
	p.in.Close()
	_ = p.cmd.Wait() // answer has reported its output
}
