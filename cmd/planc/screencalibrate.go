package main

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/passes/calibrate"
	"github.com/planc-dev/planc/runtime/amount"
)

// screen formats the fitted factors, the influence of each row, and the errors before and after the fit.
func (q *calibration) screen(r *calibrate.Result) string {
	var b strings.Builder
	b.WriteString(flow("", 0, " · ", []string{fmt.Sprintf("%d %s of %s", len(r.Rows), plural(len(r.Rows), "row"),
		q.cluster.GPU.Name),
		fmt.Sprintf("%d skipped", len(q.skipped)), "cluster " + q.cluster.Name}))
	b.WriteString("\nFACTOR      RELATIVE TO CATALOGUE\n")
	for _, f := range r.Factors {
		fmt.Fprintf(&b, "%s%s ± %s\n", pad(f.Key, 12), amount.Digits(f.Value, 3), percent(f.Error))
	}
	if len(r.Same) > 0 {
		b.WriteString(prose("unchanged", 14, strings.Join(r.Same, ", ")))
	}
	if len(r.Open) > 0 {
		b.WriteString(prose("not fitted", 14,
			strings.Join(r.Open, ", ")+": these rows hardly depend on it; it stays unchanged"))
	}
	b.WriteString("\n" + calibratedRows(r))
	errors := fmt.Sprintf("median error %s before, %s after", percent(r.MedianError(stepBefore)),
		percent(r.MedianError(stepAfter)))
	if len(r.Rows) > 1 {
		errors += fmt.Sprintf("; %s for held-out rows (each row predicted by a fit to the others)",
			percent(r.MedianError(stepLeftOut)))
	}
	b.WriteString("\n" + prose("", 0, errors))
	if len(r.Rows) == 1 {
		b.WriteString(prose("one row", 9,
			"cannot separate the factors or check the fit, which is valid only for similar steps; add rows with "+
				"other batches or plans"))
	}
	if r.Worse {
		b.WriteString(prose("rejected", 10,
			fmt.Sprintf("for held-out rows the fit is worse than the original figures: median error %s with it, "+
				"%s without it; the file keeps the original figures",
				percent(r.MedianError(stepLeftOut)), percent(r.MedianError(stepBefore)))))
	}
	const shown = 5
	for i, s := range q.skipped {
		if i == shown {
			fmt.Fprintf(&b, "skipped  %d more\n", len(q.skipped)-shown)
			break
		}
		b.WriteString(prose("skipped", 9, s))
	}
	return b.String()
}

// calibratedRows returns a table of the rows with the errors of their predictions.
func calibratedRows(r *calibrate.Result) string {
	var b strings.Builder
	line := func(name, measured, before, after, without, changed string) {
		text := pad(clip(name, 18), 18) + lpad(measured, 11) + lpad(before, 11) + lpad(after, 11) + lpad(without, 11) +
			"  " + changed
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	line("ROW", "MEASURED", "BEFORE", "AFTER", "HELD OUT", "CHANGED")
	for _, row := range r.Rows {
		off := func(v float64) string { return signed(v/row.Measured - 1) }
		changed := "nothing"
		if row.Moved != "" {
			changed = fmt.Sprintf("%s %s", row.Moved, signed(row.By))
		}
		line(row.Name, seconds(row.Measured), off(row.Before), off(row.After), off(row.Without), changed)
	}
	return b.String()
}
