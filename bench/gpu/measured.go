//go:build cuda && linux

package main

import (
	"fmt"
	"time"
)

// Measured is the measurement of a kernel or GEMM at one size.
type Measured struct {
	Name, Types, Size string
	Error             float64 // ‖result - f64‖ / ‖f64‖ of the worst result; -1 if not compared
	Bound             float64
	Bytes, Flops      float64 // minimum of bytes to move and operations
	Seconds           float64 // 0 on a machine without time
	Why               string  `json:",omitempty"`
}

// floor returns the minimum seconds for the bytes and operations.
func (m *Measured) floor(at rates) float64 { return max(m.Bytes/at.Bytes, m.Flops/at.Flops) }

// note says at which rates floors are.
func (at rates) note(r *Result) {
	if at.Bytes > 0 && at.Flops > 0 {
		r.note("floors are at the rates that this part measured: %.0f GB/s and %.0f TFLOP/s", at.Bytes/1e9,
			at.Flops/1e12)
	}
}

func (m *Measured) bad() bool { return m.Why != "" || m.Error >= 0 && !(m.Error <= m.Bound) }

// tabulateKernels writes the table and reports kernels beyond their bound.
func tabulateKernels(r *Result, all []Measured, at rates) {
	r.Raw, r.State = all, "ok"
	at.note(r)
	r.Columns = []string{"kernel", "types", "size", "error", "bound", "GB/s", "TFLOP/s", "µs", "time / floor"}
	for i := range all {
		m := &all[i]
		cells := []string{m.Name, m.Types, m.Size, "-", "-", "-", "-", "-", "-"}
		if m.Error >= 0 {
			cells[3], cells[4] = fmt.Sprintf("%.2g", m.Error), fmt.Sprintf("%.2g", m.Bound)
		}
		if m.Seconds > 0 {
			cells[5], cells[6] = fmt.Sprintf("%.0f", m.Bytes/m.Seconds/1e9), fmt.Sprintf("%.1f", m.Flops/m.Seconds/1e12)
			cells[7] = fmt.Sprintf("%.1f", m.Seconds*1e6)
			if at.Bytes > 0 && at.Flops > 0 {
				cells[8] = fmt.Sprintf("%.2f", m.Seconds/m.floor(at))
			}
		}
		if m.bad() {
			r.State = "failed"
			r.Why += fmt.Sprintf("%s of %s on %s: error %.3g %s; ", m.Name, m.Types, m.Size, m.Error, m.Why)
		}
		r.row(cells...)
	}
}

// patience is the time limit of one timing.
const patience = 300 * time.Millisecond
