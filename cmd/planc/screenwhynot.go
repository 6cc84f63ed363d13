package main

import (
	"strings"

	"github.com/planc-dev/planc/costmodel"
)

// whyNotScreen is the answer to --why-not: the verdict, and the two plans part by part.
func whyNotScreen(d *document) string {
	w := d.WhyNot
	var b strings.Builder
	b.WriteString(d.chosenTitle() + "\n")
	verdict := w.Message
	switch {
	case w.Plan == nil:
		b.WriteString(prose("WHY NOT", 9, w.question.String()+": illegal"))
		for i, r := range w.Rules {
			b.WriteString(prose([]string{"RULES", ""}[min(i, 1)], 9, r.Message))
		}
		return b.String()
	case w.NoFit != nil:
		verdict = "no fit, " + verdict
	case w.Verdict != "":
		verdict = signed(*w.SlowerBy) + ", " + verdict
	}
	b.WriteString(prose("WHY NOT", 9, w.question.String()+": "+verdict))
	if w.Verdict == "" {
		return b.String()
	}
	label := "BEST"
	if w.NoFit != nil {
		label = "NEAREST"
	}
	b.WriteString(flow(label, 9, " · ", planWords(w.other.plan)) + "\n")
	b.WriteString(whyNotTable(d.Predict, *w.Predict))
	return b.String()
}

// whyNotTable has a row for each part of time and memory that one of two plans has.
func whyNotTable(chosen, other costmodel.Predict) string {
	var b strings.Builder
	line := func(name, a, c, more string) {
		b.WriteString(strings.TrimRight(pad(name, 14)+lpad(a, 12)+lpad(c, 12)+lpad(more, 13), " ") + "\n")
	}
	time := func(name string, a, c costmodel.Seconds) {
		if a > 0 || c > 0 {
			line(name, seconds(float64(a)), seconds(float64(c)), change(float64(c-a), seconds))
		}
	}
	memory := func(name string, a, c int64) {
		if a > 0 || c > 0 {
			line(name, size(a), size(c), change(float64(c-a), func(v float64) string { return size(int64(v)) }))
		}
	}
	line("TIME", "CHOSEN", "OTHER", "CHANGE")
	for _, name := range costmodel.TimeParts {
		time(name, chosen.Time.Part(name), other.Time.Part(name))
	}
	time("step", chosen.StepS, other.StepS)
	line("\nMEMORY", "CHOSEN", "OTHER", "CHANGE")
	for _, name := range costmodel.MemoryParts {
		memory(name, chosen.MemoryBytes.Part(name), other.MemoryBytes.Part(name))
	}
	memory("total", chosen.MemoryBytes.Total, other.MemoryBytes.Total)
	return b.String()
}

// change is a difference with its sign, "" if there is none.
func change(by float64, show func(float64) string) string {
	switch {
	case by > 0:
		return "+" + show(by)
	case by < 0:
		return "-" + show(-by)
	}
	return ""
}
