package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
)

// tableNames are the page's tables in order.
var tableNames = []string{"constants", "residuals", "apart", "held"}

// fill writes the tables between their marks: "<!-- fit NAME -->" and "<!-- end fit -->".
func fill(text string, tables map[string]string) (string, error) {
	for _, name := range tableNames {
		begin, end := "<!-- fit "+name+" -->\n", "<!-- end fit -->"
		before, rest, ok := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			return "", fmt.Errorf("%s must have marks for table %s: %s…%s", page, name, strings.TrimSpace(begin), end)
		}
		text = before + begin + tables[name] + end + after
	}
	return text, nil
}

func (s *study) tables() map[string]string {
	return map[string]string{"constants": s.constants(), "residuals": s.residuals(), "apart": s.without(),
		"held": s.heldOut()}
}

func line(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func header(b *strings.Builder, cells ...string) {
	line(b, cells...)
	b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
}

// constants returns the table of fitted values and their range without each platform, which shows how much they
// depend on one source.
func (s *study) constants() string {
	var b strings.Builder
	header(&b, "constant", "fitted", "range if one source is left out")
	for i, p := range params {
		low, high := s.fitted[i], s.fitted[i]
		for _, v := range s.apart {
			low, high = min(low, v[i]), max(high, v[i])
		}
		line(&b, p.name, digits(s.fitted[i]), digits(low)+" to "+digits(high))
	}
	return b.String()
}

func digits(v float64) string {
	if v >= 10 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// sizes are the columns of the residuals: messages up to so many bytes.
var sizes = []struct {
	name string
	upTo costmodel.Bytes
}{
	{"≤ 64 KiB", 64 * costmodel.KiB}, {"≤ 1 MiB", costmodel.MiB}, {"≤ 16 MiB", 16 * costmodel.MiB},
	{"≤ 256 MiB", 256 * costmodel.MiB}, {"more", costmodel.Bytes(math.Inf(1))},
}

// errors are the errors of a set of rows, as fractions.
type errors []float64

func (e errors) cell() string {
	if len(e) == 0 {
		return "–"
	}
	abs, sum := 0.0, 0.0
	for _, v := range e {
		abs += math.Abs(v)
		sum += v
	}
	n := float64(len(e))
	return fmt.Sprintf("%.0f (%+.0f)", 100*abs/n, 100*sum/n)
}

// residuals returns the errors of the fit by platform, collective, ranks and size.
func (s *study) residuals() string {
	var b strings.Builder
	head := []string{"measured on", "ranks", "rows"}
	for _, z := range sizes {
		head = append(head, z.name)
	}
	header(&b, append(head, "all")...)
	s.bySize(&b, s.fitted, func(r *row) bool { return r.held == "" })
	return b.String()
}

// bySize writes a line for each platform, collective and number of ranks.
func (s *study) bySize(b *strings.Builder, v []float64, shown func(*row) bool) {
	m := with(v)
	m.set(s.clusters)
	type key struct{ name, ranks string }
	var keys []key
	by := map[key][]errors{}
	for i := range s.rows {
		r := &s.rows[i]
		if !shown(r) {
			continue
		}
		k := key{r.name, fmt.Sprintf("%d %s", r.at.Ranks(), r.op)}
		if r.nodes > 0 {
			k.ranks = "see above"
		}
		if by[k] == nil {
			keys = append(keys, k)
			by[k] = make([]errors, len(sizes)+1)
		}
		e := math.Exp(m.off(s.clusters, r)) - 1
		at := slices.IndexFunc(sizes, func(z struct {
			name string
			upTo costmodel.Bytes
		}) bool {
			return r.bytes <= z.upTo
		})
		by[k][at] = append(by[k][at], e)
		by[k][len(sizes)] = append(by[k][len(sizes)], e)
	}
	for _, k := range keys {
		cells := []string{k.name, k.ranks, fmt.Sprint(len(by[k][len(sizes)]))}
		for _, e := range by[k] {
			cells = append(cells, e.cell())
		}
		line(b, cells...)
	}
}

// without returns each platform's error if it is left out of the fit.
func (s *study) without() string {
	var b strings.Builder
	header(&b, "left out", "rows", "error if fitted", "error if left out")
	for _, p := range platforms {
		if v := s.apart[p.name]; v != nil {
			in, out := s.errorsOf(s.fitted, p.name), s.errorsOf(v, p.name)
			line(&b, p.name, fmt.Sprint(len(in)), in.cell(), out.cell())
		}
	}
	return b.String()
}

func (s *study) errorsOf(v []float64, name string) (out errors) {
	m := with(v)
	m.set(s.clusters)
	for i := range s.rows {
		if r := &s.rows[i]; r.name == name && r.held == "" {
			out = append(out, math.Exp(m.off(s.clusters, r))-1)
		}
	}
	return out
}

// heldOut returns the rows that are in no fit, with their errors, and those that cannot be priced.
func (s *study) heldOut() string {
	var b strings.Builder
	header(&b, "rows that no fit sees", "rows", "error", "why")
	type key struct{ name, why string }
	var keys []key
	by := map[key]errors{}
	m := with(s.fitted)
	m.set(s.clusters)
	for i := range s.rows {
		r := &s.rows[i]
		if r.held == "" {
			continue
		}
		k := key{fmt.Sprintf("%s, %d ranks", r.name, r.at.Ranks()), r.held}
		if by[k] == nil {
			keys = append(keys, k)
		}
		by[k] = append(by[k], math.Exp(m.off(s.clusters, r))-1)
	}
	for _, k := range keys {
		line(&b, k.name, fmt.Sprint(len(by[k])), by[k].cell(), k.why)
	}
	for _, u := range unused {
		line(&b, u.gpu+" "+u.part, fmt.Sprint(s.skipped[u.why]), "–", u.why)
	}
	return b.String()
}
