package screen

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/passes/validate"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
)

// Validation formats the report: errors over all rows and by source, the worst rows, and the skipped rows.
func Validation(r *validate.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s priced, %d skipped\n", len(r.Rows), layout.Plural(len(r.Rows), "row"), len(r.Skipped))
	if r.Summary.N > 0 {
		b.WriteString("\n")
		rows := [][]string{summaryCells("all", r.Summary)}
		for _, name := range slices.Sorted(maps.Keys(r.BySource)) {
			rows = append(rows, summaryCells(clipRunes(name, 30), r.BySource[name]))
		}
		b.WriteString(layout.Table([]layout.Column{layout.Left("STEP TIME"), layout.Right("N"), layout.Right("MEDIAN"),
			layout.Right("MEAN"),
			layout.Right("BIAS"), layout.Right("ORDER"), layout.Right("REGRET")}, rows))
	}
	if m := r.Memory; m.N > 0 {
		fmt.Fprintf(&b, "\nmemory   %d %s: median %s, mean %s, bias %s\n", m.N, layout.Plural(m.N, "row"),
			quantity.Percent(m.MedianAPE), quantity.Percent(m.MeanAPE), signedPercent(m.Bias))
	}
	if f := r.Fit; f.N > 0 {
		b.WriteString(layout.Prose("fits", 9, fmt.Sprintf("%d %s: balanced accuracy %s (mean over runs that fit and "+
			"runs "+
			"that do not)", f.N, layout.Plural(f.N, "row"), quantity.Percent(f.BalancedAccuracy))))
	}
	b.WriteString(worstRows(r.Rows))
	b.WriteString(skippedRows(r.Skipped))
	return b.String()
}

func summaryCells(name string, s validate.Summary) []string {
	return []string{name, fmt.Sprint(s.N), quantity.Percent(s.MedianAPE), quantity.Percent(s.MeanAPE),
		signedPercent(s.Bias),
		quantity.Percent(s.PairOrder), quantity.Percent(s.Regret)}
}

func signedPercent(v float64) string { return fmt.Sprintf("%+.1f %%", 100*v) }

// clipRunes shortens a text to at most n characters, with an ellipsis at the end.
func clipRunes(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// worstRows formats the rows with the largest errors of the step time.
func worstRows(all []validate.Priced) string {
	const shown = 5
	var rows []*validate.Priced
	for i := range all {
		if all[i].Error != nil {
			rows = append(rows, &all[i])
		}
	}
	slices.SortStableFunc(rows, func(a, b *validate.Priced) int {
		return cmp.Compare(math.Abs(*b.Error), math.Abs(*a.Error))
	})
	var cells [][]string
	for _, p := range rows[:min(shown, len(rows))] {
		cells = append(cells, []string{fmt.Sprint(p.Row), clipRunes(p.Model, 18), amount.Digits(p.Predicted, 4) + " s",
			amount.Digits(*p.Measured, 4) + " s", signedPercent(*p.Error), clipRunes(p.Plan, 34)})
	}
	if len(cells) == 0 {
		return ""
	}
	return "\n" + layout.Table([]layout.Column{layout.Right("WORST ROW"),
		layout.Left("MODEL"), layout.Right("PREDICTED"), layout.Right("MEASURED"),
		layout.Right("ERROR"), layout.Left("PLAN")}, cells)
}

// skippedRows formats the skipped rows: their number by reason, with the first row of each reason.
func skippedRows(all []validate.Skipped) string {
	n, first := map[string]int{}, map[string]int{}
	var order []string
	for _, s := range all {
		n[s.Reason]++
		if n[s.Reason] == 1 {
			order, first[s.Reason] = append(order, s.Reason), s.Row
		}
	}
	if len(order) == 0 {
		return ""
	}
	slices.SortStableFunc(order, func(a, b string) int { return n[b] - n[a] })
	const shown = 8
	var cells [][]string
	for _, why := range order[:min(shown, len(order))] {
		cells = append(cells, []string{fmt.Sprint(n[why]), fmt.Sprint(first[why]), why})
	}
	text := "\n" + layout.Table([]layout.Column{layout.Right("SKIPPED"),
		layout.Right("FIRST ROW"), layout.Left("REASON")}, cells)
	if more := len(order) - shown; more > 0 {
		text += fmt.Sprintf("and %d more %s; --json lists every row\n", more, layout.Plural(more, "reason"))
	}
	return text
}
