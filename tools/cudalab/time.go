package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"gorgonia.org/cu"

	"github.com/planc-dev/planc/bench/gpu/trial"
)

// measured is a kernel's error and time at one size.
type measured struct {
	error   float64 // ‖result - f64‖ / ‖f64‖ of the worst result; negative if not compared
	seconds float64 // of a launch
	bytes   float64 // read and written by a launch
}

// timeKernels prints the errors and times of the trials, or of those of one kernel.
func timeKernels(w io.Writer, dir, only string) error {
	g, err := open(dir)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "kernel\ttypes\tsize\terror\tbound\tµs\tGB/s")
	var failed []error
	found := false
	for _, t := range trial.All {
		if only != "" && t.Kernel != only {
			continue
		}
		found = true
		m, err := g.try(t)
		if err == nil && m.error > t.Bound {
			err = fmt.Errorf("error %.2g, the bound is %.2g", m.error, t.Bound)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s of %s: %w", t.Kernel, t.Types, err))
		}
		off, bound := "-", "-"
		if m.error >= 0 {
			off, bound = fmt.Sprintf("%.2g", m.error), fmt.Sprintf("%.2g", t.Bound)
		}
		fmt.Fprintf(table, "%s\t%s\t%d × %d\t%s\t%s\t%.1f\t%.0f\n", t.Kernel, t.Types, t.Rows, t.Cols, off, bound,
			m.seconds*1e6, m.bytes/max(m.seconds, 1e-9)/1e9)
	}
	if !found {
		return fmt.Errorf("no trial of kernel %q: use a name of the table in bench/gpu/trial", only)
	}
	return errors.Join(append(failed, table.Flush())...)
}

// launches is how often a kernel is launched for a time, of which the median of several counts.
const launches = 20

// try measures a trial, and compares its results with f64 on fewer rows.
func (g *gpu) try(t trial.Trial) (m measured, err error) {
	m.error = -1
	launch, err := t.Launch(t.Types)
	if err != nil {
		return m, err
	}
	m.bytes = launch.Bytes
	do, _, err := g.load(&launch)
	if err != nil {
		return m, err
	}
	var took []float64
	for i := range 6 {
		s, err := g.seconds(launches, do)
		if err != nil {
			return m, err
		}
		if i > 0 { // the first one loads the kernel
			took = append(took, s)
		}
	}
	slices.Sort(took)
	m.seconds = took[len(took)/2]
	if err := g.release(); err != nil || t.Exact == "" {
		return m, err
	}
	var results [2][][]float64
	for i, types := range []string{t.Types, t.Exact} {
		results[i], err = g.results(t.Small(), types)
		if err != nil {
			return m, err
		}
	}
	m.error = 0
	for i := range results[0] {
		m.error = max(m.error, trial.RelativeError(results[0][i], results[1][i]))
	}
	return m, nil
}

// load copies a launch's arguments into memory, and returns what enqueues it, and the memory of each argument.
func (g *gpu) load(l *trial.Launch) (do func() error, memory []cu.DevicePtr, err error) {
	f, err := g.function(l.File, l.Function)
	if err != nil {
		return nil, nil, err
	}
	args := make([][]byte, len(l.Args))
	memory = make([]cu.DevicePtr, len(l.Args))
	for i, a := range l.Args {
		args[i] = a.Value
		if a.Data != nil {
			memory[i], err = g.put(a.Data)
			if err != nil {
				return nil, nil, err
			}
		}
		if a.Value == nil {
			args[i] = binary.NativeEndian.AppendUint64(nil, uint64(memory[i]))
		}
	}
	if err := waitForCopies(); err != nil {
		return nil, nil, err
	}
	return func() error { return g.launch(f, l.Launch, args) }, memory, nil
}

// results runs a trial once and returns what the kernel wrote.
func (g *gpu) results(t trial.Trial, types string) (out [][]float64, err error) {
	launch, err := t.Launch(types)
	if err != nil {
		return nil, err
	}
	do, memory, err := g.load(&launch)
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	for i, a := range launch.Args {
		if a.Written() {
			if err := g.get(a.Data, memory[i]); err != nil {
				return nil, err
			}
			out = append(out, trial.Read(a.Types, a.Data))
		}
	}
	return out, g.release()
}
