package main

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/passes/validate"
)

// report writes the page, its plots and the table of error bars under the repository's root.
func report(t *tables, root string) error {
	files, err := reported(t, root)
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(name, data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// studyOf prices all rows.
func studyOf(t *tables) *study {
	r := validate.Run(t.rows)
	s := &study{report: r}
	for i := range r.Rows {
		p := &r.Rows[i]
		if p.Error == nil {
			continue
		}
		switch {
		case slices.Contains(heldOut, p.File):
			s.held = append(s.held, p)
		case p.Barred:
			s.barred = append(s.barred, p)
		default:
			s.fitted = append(s.fitted, p)
		}
	}
	return s
}

// reported returns the files of the report by name.
func reported(t *tables, root string) (map[string][]byte, error) {
	s := studyOf(t)
	page := filepath.Join(root, "docs", "validation.md")
	old, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	text, err := fill(string(old), s.sections())
	if err != nil {
		return nil, err
	}
	bars := filepath.Join(root, "costmodel", "engines", "errorbars.go")
	files := map[string][]byte{page: []byte(text), bars: s.errorBars()}
	for name, rows := range map[string][]*validate.Priced{"fitted": s.fitted, "held": s.held} {
		svg, err := scatter(rows)
		if err != nil {
			return nil, err
		}
		files[filepath.Join(root, "docs", "validation-"+name+".svg")] = svg
	}
	return files, nil
}

// study has the priced rows with a time: fitted, held out, and barred by their notes.
type study struct {
	report               *validate.Report
	fitted, held, barred []*validate.Priced
}

// sections returns the generated parts of the page.
func (s *study) sections() map[string]string {
	return map[string]string{"pairs": s.pairs(), "targets": s.targets(), "fitted": bySource(s.fitted),
		"held": bySource(s.held), "barred": bySource(s.barred),
		"worst": worst(s.fitted) + "\nAnd of those that no fit saw:\n\n" + worst(s.held), "skipped": s.skipped(),
		"bars": s.barTable()}
}

// all returns the rows with a measured time.
func (s *study) all() []*validate.Priced { return slices.Concat(s.fitted, s.held, s.barred) }

// pairs returns the table of pairs of plans in the right order, by the difference of their predictions.
func (s *study) pairs() string {
	var b strings.Builder
	b.WriteString("| predicted difference | pairs | in the right order |\n|---|---|---|\n")
	edges := []float64{0, 0.005, 0.01, 0.015, search.Apart, 0.03, 0.05, 0.1, 0.2, math.Inf(1)}
	for i, most := range edges[1:] {
		over := edges[i]
		name := fmt.Sprintf("%g to %g %%", 100*over, 100*most)
		switch {
		case i == 0:
			name = fmt.Sprintf("up to %g %%", 100*most)
		case math.IsInf(most, 1):
			name = fmt.Sprintf("over %g %%", 100*over)
		}
		pairs, right := validate.PairsApart(s.all(), over, most)
		fmt.Fprintf(&b, "| %s | %d | %.0f %% |\n", name, pairs, 100*float64(right)/float64(max(1, pairs)))
	}
	return b.String()
}

// fill writes sections between their marks: "<!-- validate NAME -->" and "<!-- end validate -->".
func fill(text string, sections map[string]string) (string, error) {
	for name, body := range sections {
		begin, end := "<!-- validate "+name+" -->\n", "<!-- end validate -->"
		before, rest, ok := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			return "", fmt.Errorf("docs/validation.md must have marks for %s: %s…%s", name,
				strings.TrimSpace(begin), end)
		}
		text = before + begin + body + end + after
	}
	return text, nil
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func signed(v float64) string { return fmt.Sprintf("%+.1f %%", 100*v) }

func head(b *bytes.Buffer, cells ...string) {
	fmt.Fprintf(b, "| %s |\n%s|\n", strings.Join(cells, " | "), strings.Repeat("|---", len(cells)))
}

func line(b *bytes.Buffer, cells ...string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }

// perSource returns each source's summary.
func perSource(rows []*validate.Priced) (names []string, of map[string]validate.Summary) {
	groups := map[string][]*validate.Priced{}
	for _, p := range rows {
		groups[p.Source] = append(groups[p.Source], p)
	}
	of = map[string]validate.Summary{}
	for name, g := range groups {
		of[name] = validate.Summarise(g)
		names = append(names, name)
	}
	slices.Sort(names)
	return names, of
}

// means returns the means over sources of their median and mean errors.
func means(rows []*validate.Priced) (median, mean float64) {
	names, of := perSource(rows)
	for _, n := range names {
		median += of[n].MedianAPE / float64(len(names))
		mean += of[n].MeanAPE / float64(len(names))
	}
	return median, mean
}

// unflagged returns the rows that are not flagged as inconsistent.
func unflagged(rows []*validate.Priced) []*validate.Priced {
	return slices.DeleteFunc(slices.Clone(rows), func(p *validate.Priced) bool { return p.Flagged })
}

func bySource(rows []*validate.Priced) string {
	var b bytes.Buffer
	head(&b, "source", "rows", "median", "mean", "bias", "order", "regret")
	names, of := perSource(rows)
	for _, n := range names {
		s := of[n]
		line(&b, n, fmt.Sprint(s.N), percent(s.MedianAPE), percent(s.MeanAPE), signed(s.Bias), percent(s.PairOrder),
			percent(s.Regret))
	}
	return b.String()
}

// memoryBySource returns each source's memory error.
func memoryBySource(r *validate.Report) string {
	errs := map[string][]float64{}
	for i := range r.Rows {
		if p := &r.Rows[i]; p.MemoryError != nil {
			errs[p.Source] = append(errs[p.Source], *p.MemoryError)
		}
	}
	var b bytes.Buffer
	head(&b, "source", "rows", "memory, median", "bias")
	for _, name := range slices.Sorted(maps.Keys(errs)) {
		abs, bias := []float64{}, 0.0
		for _, e := range errs[name] {
			abs, bias = append(abs, math.Abs(e)), bias+e/float64(len(errs[name]))
		}
		line(&b, name, fmt.Sprint(len(abs)), percent(validate.Quantile(abs, 0.5)), signed(bias))
	}
	return b.String()
}

// withoutExperts returns the rows of models without experts.
func withoutExperts(rows []*validate.Priced) []*validate.Priced {
	return slices.DeleteFunc(slices.Clone(rows), func(p *validate.Priced) bool { return p.Asked.Plan.MoESlack > 0 })
}

// targets returns the table of goals and results.
func (s *study) targets() string {
	var b bytes.Buffer
	head(&b, "measure", "required", "goal", "reached")
	var megatron []*validate.Priced
	for _, p := range s.fitted {
		if strings.Contains(p.Source, "SC21") || strings.Contains(p.Source, "Korthikanti") {
			megatron = append(megatron, p)
		}
	}
	fitMedian, fitMean := means(s.fitted)
	plainMedian, plainMean := means(unflagged(s.fitted))
	heldMedian, heldMean := means(s.held)
	all := validate.Summarise(slices.Concat(s.fitted, s.held, s.barred))
	m, f := s.report.Memory, s.report.Fit
	line(&b, "Megatron-LM A100 rows (SC'21, Korthikanti), mean error", "4 %", "2.5 %",
		percent(validate.Summarise(megatron).MeanAPE))
	line(&b, "fitted sources, mean over sources of median / mean error", "7 / 10 %", "4 / 6 %",
		percent(fitMedian)+" / "+percent(fitMean))
	line(&b, "the same, without rows flagged as inconsistent", "", "", percent(plainMedian)+" / "+percent(plainMean))
	line(&b, "held-out sources, mean over sources of median / mean error", "10 / 14 %", "5 / 8 %",
		percent(heldMedian)+" / "+percent(heldMean))
	dense := withoutExperts(slices.Concat(s.fitted, s.held, s.barred))
	denseMedian, denseMean := means(withoutExperts(s.fitted))
	line(&b, "fitted sources, rows without experts", "", "", percent(denseMedian)+" / "+percent(denseMean))
	line(&b, "pairs of plans predicted in the right order", "90 %", "97 %", percent(all.PairOrder))
	line(&b, "regret", "3 %", "1 %", percent(all.Regret))
	line(&b, "order / regret of rows without experts", "", "",
		percent(validate.Summarise(dense).PairOrder)+" / "+percent(validate.Summarise(dense).Regret))
	line(&b, fmt.Sprintf("memory, median error of %d rows", m.N), "8 %", "3 %", percent(m.MedianAPE))
	line(&b, fmt.Sprintf("whether the plan fits, balanced accuracy of %d rows", f.N), "85 %", "95 %",
		percent(f.BalancedAccuracy))
	return b.String()
}

// worst returns the table of rows with the largest errors.
func worst(rows []*validate.Priced) string {
	const shown = 12
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b *validate.Priced) int {
		switch x, y := math.Abs(*a.Error), math.Abs(*b.Error); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	var b bytes.Buffer
	head(&b, "source", "row", "model", "GPUs", "plan", "predicted", "measured", "error")
	for _, p := range sorted[:min(shown, len(sorted))] {
		line(&b, p.Source, fmt.Sprintf("%s:%d", p.File, p.Row), p.Model, fmt.Sprintf("%d × %s", p.Cluster.Devices(),
			p.Cluster.GPU.Name), p.Plan,
			fmt.Sprintf("%.4g s", p.Predicted), fmt.Sprintf("%.4g s", *p.Measured), signed(*p.Error))
	}
	return b.String()
}

// skipped returns the table of reasons why rows are not priced, with counts.
func (s *study) skipped() string {
	n := map[string]int{}
	var order []string
	for _, k := range s.report.Skipped {
		why := k.Reason
		for _, cut := range [][2]string{
			{"top_k, how many", "its model has experts and is not in the catalogue, and top_k is missing"},
			{" is not in the catalogue", "its shape is missing, or its model or GPU is not in the catalogue"},
		} {
			if strings.Contains(why, cut[0]) {
				why = cut[1]
				break
			}
		}
		n[why]++
		if n[why] == 1 {
			order = append(order, why)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return n[b] - n[a] })
	var b bytes.Buffer
	head(&b, "rows", "reason")
	for _, why := range order {
		line(&b, fmt.Sprint(n[why]), why)
	}
	return b.String()
}
