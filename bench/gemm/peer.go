package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed openblas/peer.c
var peerSource []byte

// peer is OpenBLAS in another process.
type peer struct {
	in   io.Writer
	out  *bufio.Reader
	name string
}

// startPeer compiles and starts the peer, for so many threads.
func startPeer(threads int) (*peer, error) {
	dir, err := os.MkdirTemp("", "peer")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	src, bin := filepath.Join(dir, "peer.c"), filepath.Join(dir, "peer")
	if err := os.WriteFile(src, peerSource, 0o644); err != nil {
		return nil, err
	}
	cc := exec.Command("cc", "-O2", "-o", bin, src, "-lopenblas")
	if out, err := cc.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cc: %w (on Debian: apt-get install gcc libopenblas-dev)\n%s", err, out)
	}
	cmd := exec.Command(bin)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OPENBLAS_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, fmt.Sprint("OPENBLAS_NUM_THREADS=", threads), fmt.Sprint("OMP_NUM_THREADS=", threads))
	cmd.Stderr = os.Stderr
	p := &peer{}
	p.in, err = cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	p.name, err = p.out.ReadString('\n') // the peer ends with this process, because its input ends
	return p, err
}

// time returns the seconds of so many GEMMs, and an element of the result.
func (p *peer) time(s shape, reps int) (seconds, middle float64, err error) {
	bit := map[bool]int{true: 1}
	fmt.Fprintln(p.in, s.m, s.n, s.k, bit[s.ta], bit[s.tb], reps)
	_, err = fmt.Fscan(p.out, &seconds, &middle)
	return seconds, middle, err
}
