//go:build cuda && linux

package main

import (
	"fmt"

	"github.com/planc-dev/planc/bench/gpu/trial"
	"github.com/planc-dev/planc/cuda"
)

// eachKernel tries all kernels.
func eachKernel(l *lab, r *Result) error {
	var all []Measured
	for _, t := range trial.All {
		if l.tiny {
			t = t.Tiny()
		}
		m, err := l.try(t)
		if err != nil {
			m.Why = err.Error()
		}
		l.release()
		all = append(all, m)
	}
	tabulateKernels(r, all, l.rates)
	return nil
}

// loaded is a kernel that can be launched.
type loaded struct {
	trial.Launch
	run    func() error
	memory []cuda.Memory // of each argument
}

// try measures a kernel, and compares its results with f64 on fewer rows.
func (l *lab) try(t trial.Trial) (m Measured, err error) {
	m = Measured{Name: t.Kernel, Types: t.Types, Size: fmt.Sprintf("%d × %d", t.Rows, t.Cols), Error: -1,
		Bound: t.Bound}
	x, err := l.load(t, t.Types)
	if err != nil {
		return m, err
	}
	m.Bytes = x.Bytes
	m.Seconds, err = l.time(x.run)
	if err != nil || t.Exact == "" {
		return m, err
	}
	l.release()
	var results [2][][]float64
	for i, types := range []string{t.Types, t.Exact} {
		x, err = l.load(t.Small(), types)
		if err == nil {
			err = x.run()
		}
		if err == nil {
			results[i], err = l.results(x)
		}
		if err != nil {
			return m, err
		}
	}
	m.Error = 0
	for i := range results[0] {
		m.Error = max(m.Error, trial.RelativeError(results[0][i], results[1][i]))
	}
	return m, nil
}

// results returns what a kernel wrote.
func (l *lab) results(x *loaded) (out [][]float64, err error) {
	for i, a := range x.Args {
		if a.Written() {
			b, err := l.get(x.memory[i], len(a.Data))
			if err != nil {
				return nil, err
			}
			out = append(out, trial.Read(a.Types, b))
		}
	}
	return out, nil
}

// load copies a trial's arguments into memory.
func (l *lab) load(t trial.Trial, types string) (*loaded, error) {
	f, _, err := l.kernel(t.Kernel, types)
	if err != nil {
		return nil, err
	}
	launch, err := t.Launch(types)
	if err != nil {
		return nil, err
	}
	x, args := &loaded{Launch: launch, memory: make([]cuda.Memory, len(launch.Args))}, &cuda.Args{}
	args.Reset()
	for i, a := range launch.Args {
		switch {
		case a.Value != nil:
			args.Bytes(a.Value, len(a.Value))
			continue
		case a.Data != nil:
			x.memory[i], err = l.put(a.Data)
			if err != nil {
				return nil, err
			}
		}
		args.Pointer(x.memory[i].Pointer)
	}
	x.run = func() error {
		return l.stream.Launch(f, cuda.Shape{Grid: launch.Grid, Block: launch.Block}, args)
	}
	return x, nil
}
