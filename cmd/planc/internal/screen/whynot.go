package screen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/price"
	"github.com/planc-dev/planc/planner/quantity"
)

// WhyNot formats the answer to --why-not: the verdict, and the parts of both plans side by side.
func WhyNot(d *Document) string {
	w := d.WhyNot
	var b strings.Builder
	b.WriteString(d.chosenTitle() + "\n")
	verdict := w.Message
	switch {
	case w.Plan == nil:
		b.WriteString(layout.Prose("WHY NOT", 9, w.Restriction.String()+": illegal"))
		for i, r := range w.Rules {
			b.WriteString(layout.Prose([]string{"RULES", ""}[min(i, 1)], 9, r.Message))
		}
		return b.String()
	case w.NoFit != nil:
		verdict = "no fit, " + verdict
	case w.Verdict != "":
		verdict = quantity.Signed(*w.SlowerBy) + ", " + verdict
	}
	b.WriteString(layout.Prose("WHY NOT", 9, w.Restriction.String()+": "+verdict))
	if w.Verdict == "" {
		return b.String()
	}
	label := "BEST"
	if w.NoFit != nil {
		label = "NEAREST"
	}
	b.WriteString(layout.Flow(label, 9, " · ", planWords(w.Plan.Plan)))
	if s := zeroSentence(&w.Plan.Plan, &d.Plan.Plan); s != "" {
		b.WriteString(layout.Prose("ZERO", 9, s))
	}
	b.WriteString("\n" + whyNotTable(d.Predict, *w.Predict))
	b.WriteString(movesTable(w.StateTraffic))
	return b.String()
}

// zeroSentence says which data a plan with a higher ZeRO stage than another one sends for every micro-batch; "" if
// none.
func zeroSentence(plan, other *ir.Plan) string {
	if plan.Zero < 2 || plan.Zero <= other.Zero || plan.MicroBatches*plan.VPP == 1 {
		return ""
	}
	times := fmt.Sprintf("each of %d micro-batches", plan.MicroBatches)
	if plan.VPP > 1 {
		times += fmt.Sprintf(" in each of %d chunks", plan.VPP)
	}
	s := "gradients are reduce-scattered after " + times
	if plan.Zero < 3 {
		return s + ", not once a step"
	}
	gathers := "the parameters of a block are all-gathered in the forward and the backward pass of " + times
	if other.Zero >= 2 {
		return gathers + ", not once a step"
	}
	return gathers + ", and " + s + ", not once a step"
}

// movesTable returns a table of the size of the buffers that each kind of collective over replicas reduces or gathers.
// It leaves out collectives of less than 1 KiB, such as that of the gradient norm; "" if no row is left.
func movesTable(moves [2][]price.Traffic) string {
	bytes := map[ir.Op][2]int{}
	for i := range moves {
		for _, m := range moves[i] {
			v := bytes[m.Op]
			v[i] = m.Bytes
			bytes[m.Op] = v
		}
	}
	const minBytes = 1 << 10
	maps.DeleteFunc(bytes, func(_ ir.Op, v [2]int) bool { return max(v[0], v[1]) < minBytes })
	if len(bytes) == 0 {
		return ""
	}
	b := whyNotLine("\nDP TRAFFIC", "CHOSEN", "OTHER", "CHANGE")
	for _, op := range slices.Sorted(maps.Keys(bytes)) {
		v := bytes[op]
		b += sizesLine(op.String(), int64(v[0]), int64(v[1]))
	}
	return b
}

// whyNotLine formats a row of the tables.
func whyNotLine(name, chosen, other, more string) string {
	return strings.TrimRight(layout.Pad(name, 14)+layout.PadLeft(chosen, 13)+layout.PadLeft(other,
		13)+layout.PadLeft(more, 13), " ") + "\n"
}

// sizesLine formats a row that compares two sizes in bytes.
func sizesLine(name string, chosen, other int64) string {
	a, b := quantity.BytesPair(chosen, other)
	return whyNotLine(name, a, b,
		change(float64(other-chosen), func(v float64) string { return quantity.Bytes(int64(v)) }))
}

// whyNotTable compares the parts of time and memory of two plans. Parts that are zero in both are left out.
func whyNotTable(chosen, other costmodel.Predict) string {
	var b strings.Builder
	line := func(name, a, c, more string) {
		b.WriteString(whyNotLine(name, a, c, more))
	}
	time := func(name string, a, c costmodel.Seconds) {
		if a > 0 || c > 0 {
			line(name, quantity.Seconds(float64(a)), quantity.Seconds(float64(c)),
				change(float64(c-a), quantity.Seconds))
		}
	}
	memory := func(name string, a, c int64) {
		if a > 0 || c > 0 {
			b.WriteString(sizesLine(name, a, c))
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

// change formats a difference with its sign; "" if it is zero.
func change(by float64, show func(float64) string) string {
	switch {
	case by > 0:
		return "+" + show(by)
	case by < 0:
		return "-" + show(-by)
	}
	return ""
}
