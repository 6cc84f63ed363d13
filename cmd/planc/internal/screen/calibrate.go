package screen

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/calibrate"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
)

// Calibration formats the fitted factors, the influence of each row, and the errors before and after the fit.
func Calibration(r *calibrate.Result, cluster *costmodel.Cluster, skipped []string) string {
	var b strings.Builder
	b.WriteString(layout.Flow("", 0, " · ", []string{fmt.Sprintf("%d %s of %s", len(r.Rows),
		layout.Plural(len(r.Rows), "row"),
		cluster.GPU.Name),
		fmt.Sprintf("%d skipped", len(skipped)), "cluster " + cluster.Name}))
	b.WriteString("\nFACTOR      RELATIVE TO CATALOGUE\n")
	for _, f := range r.Factors {
		fmt.Fprintf(&b, "%s%s ± %s\n", layout.Pad(f.Key, 12), amount.Digits(f.Value, 3), quantity.Percent(f.Error))
	}
	if len(r.Same) > 0 {
		b.WriteString(layout.Prose("unchanged", 14, strings.Join(r.Same, ", ")))
	}
	if len(r.Open) > 0 {
		b.WriteString(layout.Prose("not fitted", 14,
			strings.Join(r.Open, ", ")+": these rows hardly depend on it; it stays unchanged"))
	}
	b.WriteString("\n" + calibratedRows(r))
	errors := fmt.Sprintf("median error %s before, %s after", quantity.Percent(r.MedianError(calibrate.Before)),
		quantity.Percent(r.MedianError(calibrate.After)))
	if len(r.Rows) > 1 {
		errors += fmt.Sprintf("; %s for held-out rows (each row predicted by a fit to the others)",
			quantity.Percent(r.MedianError(calibrate.HeldOut)))
	}
	b.WriteString("\n" + layout.Prose("", 0, errors))
	if len(r.Rows) == 1 {
		b.WriteString(layout.Prose("one row", 9,
			"cannot separate the factors or check the fit, which is valid only for similar steps; add rows with "+
				"other batches or plans"))
	}
	if r.Worse {
		b.WriteString(layout.Prose("rejected", 10,
			fmt.Sprintf("for held-out rows the fit is worse than the original figures: median error %s with it, "+
				"%s without it; the file keeps the original figures",
				quantity.Percent(r.MedianError(calibrate.HeldOut)), quantity.Percent(r.MedianError(calibrate.Before)))))
	}
	const shown = 5
	for i, s := range skipped {
		if i == shown {
			fmt.Fprintf(&b, "skipped  %d more\n", len(skipped)-shown)
			break
		}
		b.WriteString(layout.Prose("skipped", 9, s))
	}
	return b.String()
}

// calibratedRows returns a table of the rows with the errors of their predictions.
func calibratedRows(r *calibrate.Result) string {
	var b strings.Builder
	line := func(name, measured, before, after, without, changed string) {
		text := layout.Pad(layout.Clip(name, 18), 18) + layout.PadLeft(measured, 11) + layout.PadLeft(before, 11) +
			layout.PadLeft(after, 11) + layout.PadLeft(without, 11) +
			"  " + changed
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	line("ROW", "MEASURED", "BEFORE", "AFTER", "HELD OUT", "CHANGED")
	for _, row := range r.Rows {
		off := func(v float64) string { return quantity.Signed(v/row.Measured - 1) }
		changed := "nothing"
		if row.Moved != "" {
			changed = fmt.Sprintf("%s %s", row.Moved, quantity.Signed(row.By))
		}
		line(row.Name, quantity.Seconds(row.Measured), off(row.Before), off(row.After), off(row.Without), changed)
	}
	return b.String()
}
