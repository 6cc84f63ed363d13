//go:build cuda && linux

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/planc-dev/planc/bench/gpu/trial"
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
)

// ChainTime is the measurement of a fused group of a model's program.
type ChainTime struct {
	Model string
	fusedLaunch
	Bytes   float64 // that a launch must read and write
	Floor   float64 // seconds: Bytes divided by the bandwidth of a copy; 0 on a machine without time
	Seconds float64
	Why     string `json:",omitempty"`
}

// chainTimes runs each fused group of the models' programs by itself, with the sizes of the program.
func chainTimes(l *lab, r *Result) error {
	files, err := filepath.Glob(filepath.Join(l.root, "chains", "*.json"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no fused groups in %s: run gpu-check build first", l.root)
	}
	l.rates.note(r)
	var all []ChainTime
	for _, file := range files {
		times, err := l.chainsOf(file, l.rates.Bytes)
		if err != nil {
			return err
		}
		all = append(all, times...)
	}
	tabulateChains(r, all)
	return nil
}

// chainsOf measures the fused groups of one program.
func (l *lab) chainsOf(file string, rate float64) (all []ChainTime, err error) {
	var chains []fusedLaunch
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &chains)
	}
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(file, ".json")
	image, err := os.ReadFile(name + ".fatbin")
	if err != nil {
		return nil, err
	}
	m, err := cuda.Load(image)
	if err != nil {
		return nil, err
	}
	for _, c := range chains {
		t := ChainTime{Model: filepath.Base(name), fusedLaunch: c, Bytes: c.bytes()}
		t.Seconds, err = l.chainTime(m, &c)
		if err != nil {
			t.Why = err.Error()
		}
		if rate > 0 {
			t.Floor = t.Bytes / rate
		}
		l.release()
		all = append(all, t)
	}
	return all, m.Unload()
}

// chainTime returns the seconds that a launch takes, and checks that its results are numbers.
func (l *lab) chainTime(m *cuda.Module, c *fusedLaunch) (seconds float64, err error) {
	f, err := m.Kernel(c.Kernel)
	if err != nil {
		return 0, err
	}
	args, at := &cuda.Args{}, make([]cuda.Memory, len(c.Operands))
	args.Reset()
	for i, o := range c.Operands {
		if o.Types == "" {
			args.Int32(int32(o.N))
			continue
		}
		at[i], err = l.filled(&o, i)
		if err != nil {
			return 0, err
		}
		args.Pointer(at[i].Pointer)
		if o.Indexed {
			args.Int32(int32(o.Lo)).Int32(int32(o.Size))
		}
	}
	geometry := kernels.Wide
	if c.Rowwise {
		geometry = kernels.Rowwise
	}
	shape := geometry(c.Rows, c.Cols)
	args.Int32(int32(c.Rows)).Int32(int32(c.Cols))
	run := func() error { return l.stream.Launch(f, cuda.Shape{Grid: shape.Grid, Block: shape.Block}, args) }
	if err := run(); err != nil {
		return 0, err
	}
	for i, o := range c.Operands {
		if o.Written {
			if err := l.written(at[i], &o, c.Cols); err != nil {
				return 0, err
			}
		}
	}
	return l.time(run)
}

// filled allocates memory of an operand's size, filled with indices, with repeated random numbers, or with NaN for
// results.
func (l *lab) filled(o *chainOperand, seed int) (m cuda.Memory, err error) {
	bytes := int64(o.N * trial.ElemBytes(o.Types))
	m, err = cuda.Alloc(max(bytes, 256))
	if err != nil {
		return m, err
	}
	l.allocated = append(l.allocated, m)
	if o.Written {
		return m, l.stream.Fill(m, 0xff)
	}
	var some []byte
	if n := min(o.N, trial.Period); o.Indexed {
		some = trial.Integers(trial.Trial{Kernel: "logsumexp_pick", Rows: n, Cols: o.Size}.IDs())
	} else {
		some = trial.Random(o.Types, n, seed)
	}
	once, err := l.put(some)
	if err != nil {
		return m, err
	}
	for done := int64(0); done < bytes; {
		n := min(int64(len(some)), bytes-done)
		if err := l.stream.Copy(m.At(done, n), once.At(0, n)); err != nil {
			return m, err
		}
		done += n
	}
	return m, nil
}

// written checks that the beginning and end of a result are numbers. A side of a value has cols numbers of each row.
func (l *lab) written(m cuda.Memory, o *chainOperand, cols int) error {
	size := int64(trial.ElemBytes(o.Types))
	n := min(int64(o.N), trial.Period)
	for _, from := range []int64{0, int64(o.N) - n} {
		b, err := l.get(m.At(from*size, n*size), int(n*size))
		if err != nil {
			return err
		}
		for i, x := range trial.Read(o.Types, b) {
			isResult := o.Pitch == 0 || (int(from)+i)%o.Pitch < cols
			if isResult && notFinite(x) {
				return fmt.Errorf("not all results are numbers")
			}
		}
	}
	return nil
}

// tabulateChains writes the table and reports failures.
func tabulateChains(r *Result, all []ChainTime) {
	r.Raw, r.State = all, "ok"
	r.Columns = []string{"model", "kernel", "ops", "in", "rows × columns", "MB", "µs", "GB/s", "time / floor"}
	for i := range all {
		t := &all[i]
		cells := []string{t.Model, t.Kernel, t.Ops, t.Where, fmt.Sprintf("%d × %d", t.Rows, t.Cols),
			fmt.Sprintf("%.1f", t.Bytes/1e6), "-", "-", "-"}
		if t.Seconds > 0 {
			cells[6], cells[7], cells[8] = fmt.Sprintf("%.1f", t.Seconds*1e6), fmt.Sprintf("%.0f",
				t.Bytes/t.Seconds/1e9), fmt.Sprintf("%.2f", t.Seconds/t.Floor)
		}
		if t.Why != "" {
			r.State = "failed"
			r.Why += fmt.Sprintf("%s of %s on %d × %d: %s; ", t.Kernel, t.Model, t.Rows, t.Cols, t.Why)
		}
		r.row(cells...)
	}
}

// notFinite reports whether x is NaN or infinite.
func notFinite(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }
