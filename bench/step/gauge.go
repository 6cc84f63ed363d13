package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// A gauge measures the machine's peak FMA rate by running bench/gemm: multiply-adds on registers, with a given number
// of threads. The peak changes within seconds if the machine is busy or the clock varies, so it is measured around each
// run.
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

// measureAround calls run, and returns the mean of the rates measured right before and right after it.
func (g *gauge) measureAround(run func() error) (r rates, err error) {
	before, err := g.read()
	if err != nil {
		return r, err
	}
	if err := run(); err != nil {
		return r, err
	}
	after, err := g.read()
	return rates{(before.best + after.best) / 2, (before.sustained + after.sustained) / 2}, err
}
