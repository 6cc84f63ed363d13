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

// peer is a process of peer.py, which waits for its turns with its model on the GPU.
type peer struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	said bytes.Buffer
}

// peerWants is what peer.py is told.
type peerWants struct {
	Model          model
	Micros         []int   // to try; the fastest is taken
	Compile        bool    // torch.compile
	Precision      string  // bf16 (autocast) or f32
	Started        float64 // seconds since 1970
	Patience       float64 // seconds after which it tries no other micro-batch
	Batches        string  // file of sequences, for curves
	Weights        string  // folder of safetensors, for curves
	Steps          int     // of a curve
	MemoryFraction float64 // of the GPU that it may take
}

// peerReady is what it says when it has taken the first steps.
type peerReady struct {
	First float64 // seconds from Started to the end of its first step
	Micro int     // the fastest
	Tried []struct {
		Micro  int
		Step   float64
		Bytes  int64 // peak of what its allocator held
		Failed string
	}
	Device, Torch string
	Eager         string // why it trains without torch.compile, if it does
}

// startPeer starts one; what it says is read with answer.
func (b *bench) startPeer(ctx context.Context, want peerWants) (*peer, error) {
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
	p.cmd.Stderr = &p.said
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
		return fmt.Errorf("PyTorch: %w\n%s", err, tail(p.said.String(), 2000))
	}
	return json.Unmarshal(line, to)
}

// turn asks for n steps, and is what they took.
func (p *peer) turn(n int) (took []float64, err error) {
	if _, err := fmt.Fprintln(p.in, n); err != nil {
		return nil, err
	}
	return took, p.answer(&took)
}

func (p *peer) stop() {
	p.in.Close()
	_ = p.cmd.Wait() // what it did is told
}
