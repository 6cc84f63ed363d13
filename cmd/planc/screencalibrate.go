package main

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/passes/calibrate"
	"github.com/planc-dev/planc/runtime/amount"
)

// screen is what was fitted, what each row changed, and how well the rest is then predicted.
func (q *calibration) screen(r *calibrate.Result) string {
	var b strings.Builder
	b.WriteString(flow("", 0, " · ", []string{fmt.Sprintf("%d %s of %s", len(r.Rows), plural(len(r.Rows), "row"),
		q.cluster.GPU.Name),
		fmt.Sprintf("%d skipped", len(q.skipped)), "cluster " + q.cluster.Name}))
	b.WriteString("\nFACTOR      OVER WHAT WAS PREDICTED\n")
	for _, f := range r.Factors {
		fmt.Fprintf(&b, "%s%s ± %s\n", pad(f.Key, 12), amount.Digits(f.Value, 3), percent(f.Error))
	}
	if len(r.Same) > 0 {
		b.WriteString(prose("as predicted", 14, strings.Join(r.Same, ", ")))
	}
	if len(r.Open) > 0 {
		b.WriteString(prose("not told", 14,
			strings.Join(r.Open, ", ")+": these rows hardly depend on it; it stays as it was"))
	}
	b.WriteString("\n" + calibratedRows(r))
	errors := fmt.Sprintf("median error %s before, %s after", percent(r.MedianError(stepBefore)),
		percent(r.MedianError(stepAfter)))
	if len(r.Rows) > 1 {
		errors += fmt.Sprintf("; %s of each row by a fit to the others", percent(r.MedianError(stepLeftOut)))
	}
	b.WriteString("\n" + prose("", 0, errors))
	if len(r.Rows) == 1 {
		b.WriteString(prose("one row", 9,
			"nothing tells the factors apart or checks the fit: it holds for steps like this one alone; rows of "+
				"other batches or plans would tell more"))
	}
	if r.Worse {
		b.WriteString(prose("not kept", 10,
			fmt.Sprintf("a fit to the other rows predicts a row worse than the figures as they were: by %s, %s "+
				"without it; the file has them as they were",
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

// calibratedRows is a table of the rows with the errors of their predictions.
func calibratedRows(r *calibrate.Result) string {
	var b strings.Builder
	line := func(name, measured, before, after, without, changed string) {
		text := pad(clip(name, 18), 18) + lpad(measured, 11) + lpad(before, 11) + lpad(after, 11) + lpad(without, 11) +
			"  " + changed
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	line("ROW", "MEASURED", "BEFORE", "AFTER", "LEFT OUT", "CHANGED")
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
