package validate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/planc-dev/planc/costmodel"
)

// Report is the content of contract.md's validate --json. Errors are fractions of the measured value.
type Report struct {
	Rows     []Priced           `json:"rows"`
	Skipped  []Skipped          `json:"skipped"`
	Summary  Summary            `json:"summary"`
	Memory   MemorySummary      `json:"memory"`
	Fit      FitSummary         `json:"fit"`
	BySource map[string]Summary `json:"by_source"`
}

// Priced is a row with its prediction. Values that were not measured are nil.
type Priced struct {
	Row          int              `json:"row"` // line number below its file's header, from 1
	File         string           `json:"file"`
	Source       string           `json:"source"`
	Model        string           `json:"model"`
	Engine       string           `json:"engine"`
	Plan         string           `json:"plan"`
	Predicted    float64          `json:"predicted"` // seconds per step
	Measured     *float64         `json:"measured"`
	Error        *float64         `json:"error"`
	Memory       costmodel.Memory `json:"predicted_memory_bytes"`
	MemoryError  *float64         `json:"memory_error"`
	Fits         bool             `json:"fits"`
	Flagged      bool             `json:"flagged"` // the row's note says FLAG: it is inconsistent
	Barred       bool             `json:"barred"`  // the row's note forbids calibration on it
	MeasuredFits *bool            `json:"measured_fits"`

	group   group
	Cluster *costmodel.Cluster `json:"-"`
	Predict costmodel.Predict  `json:"-"`
	Asked   *Question          `json:"-"`
}

// Skipped is a row that cannot be priced.
type Skipped struct {
	Row    int    `json:"row"`
	File   string `json:"file"`
	Source string `json:"source"`
	Reason string `json:"reason"`
}

// group identifies the rows whose plans are compared with each other.
type group struct{ source, model, gpu, gpus, batch string }

// Run prices rows.
func Run(rows []Row) *Report {
	asker := NewAsker()
	out := &Report{Rows: []Priced{}, Skipped: []Skipped{}, BySource: map[string]Summary{}}
	for i := range rows {
		r := &rows[i]
		p, err := asker.Price(r)
		if err != nil {
			out.Skipped = append(out.Skipped, Skipped{r.Number, r.File, r.Source(), err.Error()})
			continue
		}
		out.Rows = append(out.Rows, *p)
	}
	out.sum()
	return out
}

// Price prices one row's plan.
func (a *Asker) Price(r *Row) (*Priced, error) {
	q, err := a.Question(r)
	if err != nil {
		return nil, err
	}
	if _, known := r.Fitted(); r.StepS() == 0 && r.MemoryBytes() == 0 && !known {
		return nil, r.unmeasured()
	}
	predict, err := a.price(q)
	if err != nil {
		return nil, err
	}
	return r.compare(q, predict), nil
}

// compare returns a row with its prediction. The run must fit in the device's whole memory, because headroom is for
// planning.
func (r *Row) compare(q *Question, predict costmodel.Predict) *Priced {
	p := &Priced{Row: r.Number, File: r.File, Source: r.Source(), Model: r.Text("model"), Engine: q.Engine,
		Plan: q.Plan.String(), Flagged: strings.Contains(r.Text("note"), "FLAG"), Barred: r.Barred(),
		Predicted: float64(predict.StepS), Memory: predict.MemoryBytes, Fits: predict.MemoryBytes.Fits(),
		group:   group{r.Source(), r.Text("model"), r.Text("gpu"), r.Text("num_gpus"), r.Text("global_batch")},
		Cluster: q.Problem.Cluster, Predict: predict, Asked: q}
	if v := r.StepS(); v > 0 {
		e := p.Predicted/v - 1
		p.Measured, p.Error = &v, &e
	}
	if v := r.MemoryBytes(); v > 0 {
		e := r.held(predict.MemoryBytes)/v - 1
		p.MemoryError = &e
	}
	if fits, known := r.Fitted(); known {
		p.MeasuredFits = &fits
	}
	return p
}

// held returns the part of the predicted memory that the row's measurement includes: state and activations if it is
// analytic, everything except the engine's overhead if it is allocated memory.
func (r *Row) held(m costmodel.Memory) float64 {
	note := r.lower("note")
	switch {
	case strings.Contains(note, "analytic"):
		return float64(m.Params + m.Grads + m.Optimizer + m.Activations)
	case strings.Contains(note, "allocated"):
		return float64(m.Total - m.Overhead)
	}
	return float64(m.Total)
}

// unmeasured returns why a row has nothing to compare: a cell that is not a number, or only empty cells.
func (r *Row) unmeasured() error {
	for _, column := range []string{"measured_step_s", "measured_tokens_per_s_per_gpu", "measured_mem_gb_per_gpu"} {
		if text := r.Text(column); text != "" && r.measure(column) == 0 {
			return fmt.Errorf("%s is %q; it must be a number above 0", column, text)
		}
	}
	return errUnmeasured
}

// errUnmeasured is the reason to skip a row without any figure to compare.
var errUnmeasured = errors.New("nothing was measured: neither a time nor memory, nor is it said whether it fits")
