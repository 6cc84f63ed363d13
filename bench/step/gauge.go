package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// A gauge reads what bench/gemm measures: the multiply-adds that so many threads do from registers. Beside other work, or on a
// machine whose clock wanders, that is another figure some seconds later.
type gauge struct {
	bin     string
	threads int
}

// newGauge builds the gauge into dir.
func newGauge(dir string, threads int) (*gauge, error) {
	g := &gauge{bin: filepath.Join(dir, "limit"), threads: threads}
	if out, err := exec.Command("go", "build", "-o", g.bin, "./bench/gemm").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build ./bench/gemm: %w\n%s", err, out)
	}
	return g, nil
}

// read is the limit now, in GFLOP/s of all threads together.
func (g *gauge) read() (limit float64, err error) {
	out, err := exec.Command(g.bin, "-alone", "-only", "nothing", "-threads", fmt.Sprint(g.threads)).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("bench/gemm: %w\n%s", err, out)
	}
	_, text, ok := strings.Cut(string(out), "limit ")
	if !ok {
		return 0, fmt.Errorf("bench/gemm names no limit: %s", out)
	}
	_, err = fmt.Sscanf(text, "%f", &limit)
	return limit, err
}

// around does a turn and returns the mean of the limits right before it and right after.
func (g *gauge) around(turn func() error) (limit float64, err error) {
	before, err := g.read()
	if err != nil {
		return 0, err
	}
	if err := turn(); err != nil {
		return 0, err
	}
	after, err := g.read()
	return (before + after) / 2, err
}
