package screen

import (
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
)

// Analysis formats a prediction against a run, part by part, as EXPLAIN ANALYZE does. calibrate is the command
// that writes the fitted rates to a file.
func Analysis(a *planner.Analysis, calibrate string) string {
	var b strings.Builder
	rates := "predicted at the rates of " + a.Rates
	if a.Rates == "catalogue" {
		rates = "predicted at the catalogue's rates of " + a.Cluster.Name
	}
	b.WriteString(layout.Flow("", 0, " · ", []string{a.Name, fmt.Sprintf("%s, steps %d to %d", a.Run, a.First,
		a.Last), rates}) + "\n")
	b.WriteString(layout.Table([]layout.Column{layout.Left("PART"), layout.Right("PREDICTED"), layout.Right("MEASURED"),
		layout.Right("ERROR"), layout.Right("OF STEP"), layout.Left("")}, analysisRows(a)))
	b.WriteString("\n")
	b.WriteString(analysisFindings(a))
	b.WriteString(analysisVerdict(a))
	b.WriteString(layout.Prose("", 0, "Keep these rates: "+calibrate))
	return b.String()
}

// analysisRows returns the rows of the parts, the step and the memory.
func analysisRows(a *planner.Analysis) (rows [][]string) {
	worst := a.WorstPart()
	for i, p := range a.Parts {
		off, mark := "–", ""
		if p.Error != nil {
			off = signedError(*p.Error)
		}
		if i == worst {
			mark = "<<"
		}
		rows = append(rows, []string{p.Part, quantity.Seconds(p.Predicted), quantity.Seconds(p.Measured), off,
			quantity.Signed(p.OfStep), mark})
	}
	inside := "inside the predicted range"
	if !a.Step.IsInside {
		inside = fmt.Sprintf("outside %s to %s", quantity.Seconds(a.Step.Low), quantity.Seconds(a.Step.High))
	}
	rows = append(rows, []string{"step", quantity.Seconds(a.Step.Predicted), quantity.Seconds(a.Step.Measured),
		signedError(a.Step.Error), "", inside})
	return append(rows, []string{"memory", quantity.Bytes(a.Memory.Predicted), quantity.Bytes(a.Memory.Measured),
		signedError(float64(a.Memory.Measured)/float64(a.Memory.Predicted) - 1), "", ""})
}

// signedError formats the error of a part: as a percentage, or as a multiple if it is large.
func signedError(off float64) string {
	const large = 9
	if off >= large {
		return fmt.Sprintf("× %s", amount.Digits(1+off, 2))
	}
	return quantity.Signed(off)
}

// analysisFindings says what is slow, and what the fit changes.
func analysisFindings(a *planner.Analysis) string {
	var b strings.Builder
	if len(a.Parts) == 0 {
		b.WriteString(layout.Prose("parts", 12, "not measured: a run on GPUs, or of an older version"))
	} else {
		b.WriteString(layout.Prose("waiting", 12, fmt.Sprintf("collectives and receives waited %s a step for other "+
			"ranks", quantity.Seconds(a.WaitS))))
	}
	if s := a.Slowest; s != nil {
		b.WriteString(layout.Prose("slowest", 12, fmt.Sprintf("rank %d: %s of its own work a step, %s to the median "+
			"rank", s.Rank, quantity.Seconds(s.BusyS), quantity.Signed(s.SlowerBy))))
	}
	var words []string
	for _, f := range a.Calibrate.Factors {
		words = append(words, f.Key+" × "+amount.Digits(f.Value, 3))
	}
	text := "no rate explains the difference; the rates stay as predicted"
	if len(words) > 0 {
		text = fmt.Sprintf("%s (overhead is time, the others are rates): the step is then predicted as %s",
			strings.Join(words, ", "), quantity.Seconds(a.Calibrate.StepS))
	}
	b.WriteString(layout.Prose("calibrate", 12, text))
	return b.String()
}

// analysisVerdict says whether another plan would win with the measured rates.
func analysisVerdict(a *planner.Analysis) string {
	r, condition := &a.Replan, "with these rates"
	if r.IsPinned {
		condition += " and without the job's pins"
	}
	switch {
	case r.IsSame:
		return layout.Prose("plan", 12, condition+" this plan is still the one to recommend: keep it")
	case r.FasterBy > 0:
		return layout.Prose("plan", 12, fmt.Sprintf("%s %s would be %s faster (%s a step)", condition, r.Name,
			quantity.Percent(r.FasterBy), quantity.Seconds(float64(r.Predict.StepS))))
	}
	return layout.Prose("plan", 12, fmt.Sprintf("%s planc recommends %s, which is %s slower and has less risk",
		condition, r.Name, quantity.Percent(math.Abs(r.FasterBy))))
}
