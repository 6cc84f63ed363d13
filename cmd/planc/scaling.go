package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/runtime/amount"
)

// scalingDoc is how a job scales over numbers of devices. Strong scaling keeps the batch: the rows themselves. Weak
// scaling lets it grow with the devices, from the first row that fits: each row's weak.
type scalingDoc struct {
	From int `json:"from"` // devices of the first row that fits, which the others are compared with
	// SerialFraction is s of Amdahl's law (Amdahl 1967), t(n) = t(1)·(s + (1-s)/n), n in multiples of From: that which
	// is off by least, as parts of what it says, in the square over all rows that fit. Below 0 where more devices do
	// more than their share, since less memory is short.
	SerialFraction float64 `json:"serial_fraction"`
	// root of the mean square by which times are off, as fractions of the law's
	Residual float64 `json:"residual"`
	Fits     bool    `json:"fits"` // whether the law describes the rows: none says what it denies
	// the speed-up that the law allows at most, 1/s; null where it does not fit, or s is not above 0
	Limit *float64 `json:"limit"`

	least, most ownFraction
}

// ownFraction is the serial fraction that one row alone would have (Karp and Flatt 1990), beside the first.
type ownFraction struct {
	devices int
	s       float64
}

// weakDoc is a row's size with a batch that has grown as the devices have.
type weakDoc struct {
	Batch      int                `json:"global_batch"`
	Plan       map[string]any     `json:"plan"`
	Predict    *costmodel.Predict `json:"predict"`
	Efficiency float64            `json:"efficiency"` // tokens a second and device, of the first row's that fits
}

// scales tells whether a sweep's values are numbers of devices.
func (s sweep) scales() bool { return s.key == "gpus" || s.key == "nodes" }

// weak answers each row's size with its batch grown from the first row that fits.
func (q *sweeping) weak(d *sweepDoc) error {
	var first *sweepRow
	for i := range d.Rows {
		r := &d.Rows[i]
		if !r.Fits {
			continue
		}
		if first == nil {
			first = r
		}
		batch := q.base.GlobalBatch * r.Cluster.Devices
		if batch%first.Cluster.Devices != 0 {
			continue
		}
		p := q.base
		if err := sweepable[q.index].change(q, &p, r.Value); err != nil {
			return err
		}
		p.GlobalBatch = batch / first.Cluster.Devices
		best, counts, err := q.series.Best(&p)
		d.Search.add(counts)
		d.searches++
		if err != nil { // a batch for which no plan is legal, or none fits
			continue
		}
		r.Weak = &weakDoc{Batch: p.GlobalBatch, Plan: best.Plan.JSON(), Predict: &best.Predict,
			Efficiency: best.Predict.TokensPerSGPU / first.Predict.TokensPerSGPU}
	}
	return nil
}

// scaling sums rows up; nil where fewer than two fit.
func (d *sweepDoc) scaling() *scalingDoc {
	first := d.first()
	if first == nil {
		return nil
	}
	out := &scalingDoc{From: first.Cluster.Devices}
	var more, slow []float64 // devices beyond the first's, and device-seconds, as multiples of the first's
	var own []ownFraction
	for i := range d.Rows {
		if r := &d.Rows[i]; r.Fits && r != first {
			n := float64(r.Cluster.Devices) / float64(first.Cluster.Devices)
			more, slow = append(more, n-1), append(slow, n*float64(r.Predict.StepS/first.Predict.StepS))
			own = append(own, ownFraction{r.Cluster.Devices, (slow[len(slow)-1] - 1) / (n - 1)})
		}
	}
	if len(more) == 0 {
		return nil
	}
	less := func(a, b ownFraction) int { return cmp.Compare(a.s, b.s) }
	out.least, out.most = slices.MinFunc(own, less), slices.MaxFunc(own, less)
	out.SerialFraction, out.Residual = amdahl(more, slow)
	out.Fits = describes(out.SerialFraction, out.Residual, more, slow)
	if out.Fits && out.SerialFraction > 0 {
		limit := costmodel.SixDigits(1 / out.SerialFraction)
		out.Limit = &limit
	}
	return out
}

// amdahl fits slow = 1 + s·more by least squares of relative errors, weighed anew until they are.
func amdahl(more, slow []float64) (s, residual float64) {
	for range 50 {
		up, down := 0.0, 0.0
		for i, x := range more {
			law := 1 + s*x
			up += (slow[i] - 1) * x / (law * law)
			down += x * x / (law * law)
		}
		s = max(up/down, -0.5/slices.Max(more)) // a law that stays above 0
	}
	for i, x := range more {
		e := slow[i]/(1+s*x) - 1
		residual += e * e / float64(len(more))
	}
	return costmodel.SixDigits(s), costmodel.SixDigits(math.Sqrt(residual))
}

// describes tells whether a law may be said of rows that it was fitted to: it is off by no more than a tenth, no row is
// as fast as the law's limit, and none is on the other side of a perfect division of the work than the law, by more
// than a fiftieth.
func describes(s, residual float64, more, slow []float64) bool {
	const off, beyond = 0.1, 0.02
	if residual > off {
		return false
	}
	for i, x := range more {
		switch e := slow[i] - 1; {
		case s > 0 && (e < -beyond || (1+x)/slow[i] >= 1/s), s <= 0 && e > beyond:
			return false
		}
	}
	return true
}

// communication is the part of a step that waits for communication.
func communication(p *costmodel.Predict) float64 {
	t := p.Time
	return float64((t.TPComm + t.CPComm + t.EPComm + t.PPComm + t.DPComm) / p.StepS)
}

// scalingScreen draws the rows of a sweep: how much faster each is, and what part of its devices' time that is worth.
func scalingScreen(d *sweepDoc) string {
	s := d.Scaling
	if s == nil {
		return ""
	}
	columns := []column{{d.deviceTitle(), true}, {"SPEED-UP", true}, {"STRONG", false}, {"", true}, {"WEAK", false},
		{"", true}, {"COMM", true}, {"BATCH", true}}
	var rows [][]string
	for _, r := range d.Rows {
		if !r.Fits {
			continue
		}
		up := float64(d.first().Predict.StepS / r.Predict.StepS)
		row := []string{grouped(r.Cluster.Devices), factor(up), bar(*r.Efficiency), wholePercent(*r.Efficiency), "",
			"", wholePercent(communication(r.Predict)), ""}
		if r.Weak != nil {
			row[4], row[5], row[7] = bar(r.Weak.Efficiency), wholePercent(r.Weak.Efficiency), grouped(r.Weak.Batch)
		}
		rows = append(rows, row)
	}
	text := fmt.Sprintf("STRONG keeps the batch, WEAK lets it grow to BATCH with the %s: parallel efficiency, of %s. "+
		"COMM waits for communication. Amdahl's law: %s.",
		d.devices(), grouped(s.From), s.sentence())
	return "\n" + table(columns, rows) + "\n" + prose("", 0, text)
}

// sentence is the law's, for people.
func (s *scalingDoc) sentence() string {
	off := fmt.Sprintf("within %s", percent(s.Residual))
	if !s.Fits {
		return "no serial fraction fits: " + s.denied()
	}
	if s.Limit == nil {
		return fmt.Sprintf("serial fraction %s, %s: less than none, as more devices have more memory",
			fraction(s.SerialFraction), off)
	}
	return fmt.Sprintf("serial fraction %s, %s: at most %s × as fast as %s", fraction(s.SerialFraction), off,
		amount.Short(*s.Limit), grouped(s.From))
}

// denied is what rows say of which no law is true. The law has one fraction for all sizes; of each size alone another
// comes out.
func (s *scalingDoc) denied() string {
	least, most := grouped(s.least.devices), s.alone(s.most)
	switch {
	case s.least.s >= 1:
		return fmt.Sprintf("more devices are no faster than %s", grouped(s.From))
	case s.most.s < 0 && s.least != s.most:
		return fmt.Sprintf("%s and %s each do more than their share", least, grouped(s.most.devices))
	case s.least.s < 0 && s.least != s.most:
		return fmt.Sprintf("%s do more than their share, and %s", least, most)
	case s.least.s < 0:
		return least + " do more than their share"
	case s.least == s.most:
		return most
	}
	return fmt.Sprintf("%s, but %s", s.alone(s.least), most)
}

// alone is a size's own fraction in words. From 1 on there is no gain that a fraction could be of.
func (s *scalingDoc) alone(f ownFraction) string {
	if f.s >= 1 {
		return fmt.Sprintf("%s are no faster than %s", grouped(f.devices), grouped(s.From))
	}
	return fmt.Sprintf("%s are as fast as if %s of the work were serial", grouped(f.devices), fraction(f.s))
}

// first is the row that the others are compared with.
func (d *sweepDoc) first() *sweepRow {
	for i := range d.Rows {
		if d.Rows[i].Fits {
			return &d.Rows[i]
		}
	}
	return nil
}

func (d *sweepDoc) devices() string {
	if d.cpu {
		return "devices"
	}
	return "GPUs"
}

func (d *sweepDoc) deviceTitle() string {
	if d.cpu {
		return "DEVICES"
	}
	return "GPUS"
}

// bar draws a fraction, at most a quarter above 1.
func bar(f float64) string { return cells(min(f, 1.25)) }

func factor(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) + " ×" }

// fraction is a small one as per cent, to three digits.
func fraction(f float64) string { return strconv.FormatFloat(100*f, 'g', 3, 64) + " %" }
