package planner

import (
	"cmp"
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
)

// Scaling is how a job scales over numbers of devices. Strong scaling keeps the batch: the rows themselves. Weak
// scaling lets the batch grow with the devices, from the first row that fits: each row's Weak.
type Scaling struct {
	From int `json:"from"` // devices of the first row that fits, with which the others are compared
	// SerialFraction is s of Amdahl's law (Amdahl 1967), t(n) = t(1)·(s + (1-s)/n), with n in multiples of From. It is
	// fitted by least squares of relative errors over all rows that fit. It is below 0 if more devices do more than
	// their share, because they have more memory.
	SerialFraction float64 `json:"serial_fraction"`
	Residual       float64 `json:"residual"` // root mean square of the relative errors of the law's times
	Fits           bool    `json:"fits"`     // whether the law describes the rows: no row contradicts it
	// Limit is the largest speed-up that the law allows, 1/s; null if the law does not fit, or if s is not above 0.
	Limit *float64 `json:"limit"`

	Least   RowFraction `json:"-"` // of all rows, the one with the smallest serial fraction of its own
	Largest RowFraction `json:"-"` // and the one with the largest
}

// RowFraction is the serial fraction that one row alone would have (Karp and Flatt 1990), compared with the first row.
type RowFraction struct {
	Devices        int
	SerialFraction float64
}

// WeakRow is a row's number of devices with a batch that has grown as the devices have.
type WeakRow struct {
	Batch   int                `json:"global_batch"` // sequences
	Plan    Plan               `json:"plan"`
	Predict *costmodel.Predict `json:"predict"`
	// tokens per second and device, over those of the first row that fits
	Efficiency float64 `json:"efficiency"`
}

// addWeakRows answers each row's number of devices with its batch grown from the first row that fits.
func (r *sweepRun) addWeakRows() error {
	d := r.document
	first := d.First()
	for i := range d.Rows {
		row := &d.Rows[i]
		if !row.Fits {
			continue
		}
		batch := r.base.GlobalBatch * row.Cluster.Devices
		if batch%first.Cluster.Devices != 0 {
			continue
		}
		p := r.base
		if err := sweepKeys[r.index].set(r, &p, row.Value); err != nil {
			return err
		}
		p.GlobalBatch = batch / first.Cluster.Devices
		best, counts, err := r.series.Best(&p)
		d.Search.add(counts)
		d.Searches++
		if err != nil { // no plan is legal with this batch, or none fits
			continue
		}
		row.Weak = &WeakRow{Batch: p.GlobalBatch, Plan: Plan{best.Plan}, Predict: &best.Predict,
			Efficiency: best.Predict.TokensPerSGPU / first.Predict.TokensPerSGPU}
	}
	return nil
}

// scaling fits Amdahl's law to the rows; nil if fewer than two fit.
func (d *SweepDocument) scaling() *Scaling {
	first := d.First()
	if first == nil {
		return nil
	}
	out := &Scaling{From: first.Cluster.Devices}
	var more, slow []float64 // devices beyond the first row's, and device-seconds, as multiples of the first row's
	var own []RowFraction
	for i := range d.Rows {
		if r := &d.Rows[i]; r.Fits && r != first {
			n := float64(r.Cluster.Devices) / float64(first.Cluster.Devices)
			more, slow = append(more, n-1), append(slow, n*float64(r.Predict.StepS/first.Predict.StepS))
			own = append(own, RowFraction{r.Cluster.Devices, (slow[len(slow)-1] - 1) / (n - 1)})
		}
	}
	if len(more) == 0 {
		return nil
	}
	compare := func(a, b RowFraction) int { return cmp.Compare(a.SerialFraction, b.SerialFraction) }
	out.Least, out.Largest = slices.MinFunc(own, compare), slices.MaxFunc(own, compare)
	out.SerialFraction, out.Residual = fitAmdahl(more, slow)
	out.Fits = describesRows(out.SerialFraction, out.Residual, more, slow)
	if out.Fits && out.SerialFraction > 0 {
		limit := costmodel.SixDigits(1 / out.SerialFraction)
		out.Limit = &limit
	}
	return out
}

// fitAmdahl fits slow = 1 + s·more by least squares of relative errors: it weighs the squares with the law's own
// values, and repeats that until they no longer change.
func fitAmdahl(more, slow []float64) (s, residual float64) {
	for range 50 {
		up, down := 0.0, 0.0
		for i, x := range more {
			law := 1 + s*x
			up += (slow[i] - 1) * x / (law * law)
			down += x * x / (law * law)
		}
		s = max(up/down, -0.5/slices.Max(more)) // so that the law stays above 0
	}
	for i, x := range more {
		e := slow[i]/(1+s*x) - 1
		residual += e * e / float64(len(more))
	}
	return costmodel.SixDigits(s), costmodel.SixDigits(math.Sqrt(residual))
}

// describesRows reports whether a law describes the rows that it was fitted to: its residual is at most a tenth, no row
// is as fast as the law's limit, and no row is by more than a fiftieth on the other side of a perfect division of the
// work than the law.
func describesRows(s, residual float64, more, slow []float64) bool {
	const mostResidual, tolerance = 0.1, 0.02
	if residual > mostResidual {
		return false
	}
	for i, x := range more {
		switch e := slow[i] - 1; {
		case s > 0 && (e < -tolerance || (1+x)/slow[i] >= 1/s), s <= 0 && e > tolerance:
			return false
		}
	}
	return true
}
