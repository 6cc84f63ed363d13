package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// A gauge runs bench/gemm to read the limit: the rate of multiply-adds of so many threads from registers. On a busy
// machine, or if the clock varies, the limit differs some seconds later.
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

// rates are GFLOP/s of all threads together.
type rates struct {
	best      float64 // the limit: the best of eight short tries
	sustained float64 // sustained over a second, as in a step
}

// read measures the current rates.
func (g *gauge) read() (r rates, err error) {
	out, err := exec.Command(g.bin, "-alone", "-only", "nothing", "-threads", fmt.Sprint(g.threads)).CombinedOutput()
	if err != nil {
		return r, fmt.Errorf("bench/gemm: %w\n%s", err, out)
	}
	_, text, ok := strings.Cut(string(out), "limit ")
	if !ok {
		return r, fmt.Errorf("the output of bench/gemm has no limit: %s", out)
	}
	_, err = fmt.Sscanf(text, "%f GFLOP/s, sustained %f", &r.best, &r.sustained)
	return r, err
}

// around runs a turn and returns the means of the rates right before and after it.
func (g *gauge) around(turn func() error) (r rates, err error) {
	before, err := g.read()
	if err != nil {
		return r, err
	}
	if err := turn(); err != nil {
		return r, err
	}
	after, err := g.read()
	return rates{(before.best + after.best) / 2, (before.sustained + after.sustained) / 2}, err
}
