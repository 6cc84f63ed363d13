package screen

import (
	"fmt"
	"strconv"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
)

// communication is the part of a step that waits for communication.
func communication(p *costmodel.Predict) float64 {
	t := p.Time
	return float64((t.TPComm + t.CPComm + t.EPComm + t.PPComm + t.DPComm) / p.StepS)
}

// scalingRows draws the rows of a sweep: how much faster each is, and what part of its devices' time that is worth.
func scalingRows(d *SweepDocument) string {
	s := d.Scaling
	if s == nil {
		return ""
	}
	columns := []layout.Column{layout.Right(d.deviceTitle()), layout.Right("SPEED-UP"), layout.Left("STRONG"),
		layout.Right(""), layout.Left("WEAK"),
		layout.Right(""), layout.Right("COMM"), layout.Right("BATCH")}
	var rows [][]string
	for _, r := range d.Rows {
		if !r.Fits {
			continue
		}
		up := float64(d.First().Predict.StepS / r.Predict.StepS)
		row := []string{quantity.Count(r.Cluster.Devices), factor(up), bar(*r.Efficiency), wholePercent(*r.Efficiency),
			"",
			"", wholePercent(communication(r.Predict)), ""}
		if r.Weak != nil {
			row[4], row[5], row[7] = bar(r.Weak.Efficiency), wholePercent(r.Weak.Efficiency),
				quantity.Count(r.Weak.Batch)
		}
		rows = append(rows, row)
	}
	text := fmt.Sprintf("STRONG keeps the batch, WEAK lets it grow to BATCH with the %s: parallel efficiency, of %s. "+
		"COMM waits for communication. Amdahl's law: %s.",
		d.devices(), quantity.Count(s.From), scalingSentence(s))
	return "\n" + layout.Table(columns, rows) + "\n" + layout.Prose("", 0, text)
}

// scalingSentence says what Amdahl's law allows, or that it does not describe the rows.
func scalingSentence(s *planner.Scaling) string {
	off := fmt.Sprintf("within %s", quantity.Percent(s.Residual))
	if !s.Fits {
		return "no serial fraction fits: " + contradiction(s)
	}
	if s.Limit == nil {
		return fmt.Sprintf("serial fraction %s, %s: less than none, as more devices have more memory",
			fraction(s.SerialFraction), off)
	}
	return fmt.Sprintf("serial fraction %s, %s: at most %s × as fast as %s", fraction(s.SerialFraction), off,
		amount.Short(*s.Limit), quantity.Count(s.From))
}

// contradiction says why the law does not describe the rows: it has one serial fraction for all of them, and each row
// alone would have another.
func contradiction(s *planner.Scaling) string {
	least, largest := quantity.Count(s.Least.Devices), rowFractionWords(s, s.Largest)
	switch {
	case s.Least.SerialFraction >= 1:
		return fmt.Sprintf("more devices are no faster than %s", quantity.Count(s.From))
	case s.Largest.SerialFraction < 0 && s.Least != s.Largest:
		return fmt.Sprintf("%s and %s each do more than their share", least, quantity.Count(s.Largest.Devices))
	case s.Least.SerialFraction < 0 && s.Least != s.Largest:
		return fmt.Sprintf("%s do more than their share, and %s", least, largest)
	case s.Least.SerialFraction < 0:
		return least + " do more than their share"
	case s.Least == s.Largest:
		return largest
	}
	return fmt.Sprintf("%s, but %s", rowFractionWords(s, s.Least), largest)
}

// rowFractionWords returns a row's own serial fraction in words. From 1 on more devices gain nothing.
func rowFractionWords(s *planner.Scaling, f planner.RowFraction) string {
	if f.SerialFraction >= 1 {
		return fmt.Sprintf("%s are no faster than %s", quantity.Count(f.Devices), quantity.Count(s.From))
	}
	return fmt.Sprintf("%s are as fast as if %s of the work were serial", quantity.Count(f.Devices),
		fraction(f.SerialFraction))
}

func (d *SweepDocument) devices() string {
	if d.IsCPU {
		return "devices"
	}
	return "GPUs"
}

func (d *SweepDocument) deviceTitle() string {
	if d.IsCPU {
		return "DEVICES"
	}
	return "GPUS"
}

// bar draws a fraction, at most a quarter above 1.
func bar(f float64) string { return cells(min(f, 1.25)) }

func factor(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) + " ×" }

// fraction is a small one as per cent, to three digits.
func fraction(f float64) string { return strconv.FormatFloat(100*f, 'g', 3, 64) + " %" }
