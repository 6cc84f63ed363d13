package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
)

// Explain formats the answer of planc explain. docs/reading.md explains its lines.
func Explain(d *Document) string {
	var b strings.Builder
	b.WriteString(d.chosenTitle() + "\n")
	b.WriteString(layout.Prose("WHY", 9, d.whySentence()))
	b.WriteString(d.adviceLines(upperLabel, planner.AdviceFastest, planner.AdviceSimpler))
	b.WriteString(layout.Prose("LIMIT", 9, d.bindingSentence()))
	if d.Head.Experts != "" {
		b.WriteString(layout.Prose("EXPERTS", 9, d.Head.Experts))
	}
	b.WriteString(d.adviceLines(upperLabel, planner.AdviceTight))
	if len(d.Choices) > 0 {
		b.WriteString("\n" + choiceTable(d.Choices))
	}
	b.WriteString("\n" + d.memorySum() + timeSum(&d.Predict) + d.stageLine())
	b.WriteString(d.leverLine() + ruleLines(d.Rules))
	b.WriteString(layout.Prose("SEARCH", labelColumn, d.searchSentence()))
	b.WriteString(layout.Prose("ERROR", labelColumn, d.errorSentence()))
	if d.Head.lock != "" {
		b.WriteString(layout.Prose("LOCK", labelColumn, d.Head.lock))
	}
	b.WriteString("\nmore: " + moreText(d.Choices) + " · --json\n")
	return b.String()
}

// chosenTitle returns the model, the cluster and the step time, and on the second line the engine and the chosen plan.
func (d *Document) chosenTitle() string {
	words := strings.Split(briefPlan(d.Plan.Plan), " · ")
	words[0] = d.engineWords() + ": " + words[0]
	if uneven := unevenWords(d.Plan.Plan); uneven != "" {
		words = append(words, uneven)
	}
	title := func(width int) string {
		return fmt.Sprintf("%s on %d × %s: %s", layout.Clip(d.Model.Name, width), d.Cluster.Nodes,
			layout.Clip(d.Cluster.Name, width),
			quantity.Seconds(float64(d.Predict.StepS)))
	}
	const narrow = 26 // two names of this width fit on one line
	first := title(maxNameWidth)
	if layout.Width(first) > layout.ScreenWidth {
		first = title(narrow)
	}
	return first + "\n" + layout.Flow("", 0, " · ", words)
}

// moreText returns a flag for a follow-up question.
func moreText(choices []planner.Choice) string {
	for _, c := range choices {
		if c.RunnerUp != nil && c.Name == "tp" {
			return fmt.Sprintf("--why-not tp=%v", c.RunnerUp)
		}
	}
	return "--why-not KEY=VALUE"
}

// labelColumn is the column where the text of the lower part of the screen begins.
const labelColumn = 16

func choiceTable(choices []planner.Choice) string {
	line := func(name, taken, runner, cost, reason string) string {
		left := layout.Pad(layout.Pad(layout.Pad(layout.Pad(name, 12)+taken, 24)+runner, 36)+cost, 45)
		return layout.Prose(left, 45, reason)
	}
	var b strings.Builder
	b.WriteString(line("CHOICE", "CHOSEN", "RUNNER-UP", "COST", "REASON"))
	for _, c := range choices {
		cost := "illegal"
		switch {
		case c.Verdict == "no_fit":
			cost = "no fit"
		case c.SlowerBy != nil:
			cost = quantity.Signed(*c.SlowerBy)
		}
		b.WriteString(line(c.Name, choiceValue(c.Taken), choiceValue(c.RunnerUp), cost, c.Message))
	}
	return b.String()
}

// choiceValue formats the value of a plan's key.
func choiceValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v]
	case []string:
		return cmp.Or(strings.Join(v, ","), "none")
	}
	return fmt.Sprint(v)
}

// memorySum returns the parts of the memory and their sum.
func (d *Document) memorySum() string {
	m := d.Predict.MemoryBytes
	name, scale := "GiB", float64(1<<30)
	switch {
	case m.Total < 1<<20:
		name, scale = "KiB", 1<<10
	case m.Total < (1<<30)/10:
		name, scale = "MiB", 1<<20
	}
	show := func(v float64) string {
		text := strconv.FormatFloat(v/scale, 'f', 1, 64)
		if text == "0.0" { // a part that is not zero
			return "<0.1"
		}
		return text
	}
	var words []string
	for _, part := range partsOfMemory(m) {
		if part.bytes > 0 {
			words = append(words, part.name+" "+show(float64(part.bytes)))
		}
	}
	text := sum("MEMORY "+name, words, show(float64(m.Total)))
	if d.Plan.Plan.PP > 1 {
		first, rest, two := strings.Cut(text, "\n")
		stage := layout.Pad(fmt.Sprintf(" (stage %d)", d.Stage), labelColumn)
		if two && strings.HasPrefix(rest, strings.Repeat(" ", labelColumn)) {
			text = first + "\n" + stage + rest[labelColumn:]
		}
	}
	return text
}

// partsOfMemory returns the parts of the memory in their order. On a GPU, those of the overhead replace it.
func partsOfMemory(m costmodel.Memory) (out []memoryPart) {
	for _, name := range costmodel.MemoryParts {
		o := m.OverheadParts
		if name == "overhead" && o.Context > 0 {
			out = append(out, memoryPart{"CUDA context", o.Context}, memoryPart{"communicators", o.Communicators},
				memoryPart{"libraries", o.Workspaces})
			continue
		}
		out = append(out, memoryPart{name, m.Part(name)})
	}
	return out
}

type memoryPart struct {
	name  string
	bytes int64
}

// timeSum returns the parts of the step time and their sum.
func timeSum(p *costmodel.Predict) string {
	step := float64(p.StepS)
	name, scale, decimals := "s", 1.0, 2
	switch {
	case step < 0.0995e-1:
		name, scale = "ms", 1e-3
	case step < 1:
		name, scale, decimals = "ms", 1e-3, 1
	}
	show := func(v float64) string { return strconv.FormatFloat(v/scale, 'f', decimals, 64) }
	var words []string
	for _, part := range shares(p.Time) {
		words = append(words, part.name+" "+show(part.value))
	}
	return sum("TIME "+name, words, show(step))
}

// sum formats words on as many lines as they need, with "= total" at the end of the last line.
func sum(label string, words []string, total string) string {
	const right = 64
	text := strings.TrimSuffix(layout.FlowTo(label, labelColumn, right, "  ", words), "\n")
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return text + strings.Repeat(" ", max(1, right+1-layout.Width(last))) + "= " + total + "\n"
}

// searchSentence returns the counts of the search, the pinned keys, and the keys that were not searched completely.
func (d *Document) searchSentence() string {
	s := d.Search
	text := fmt.Sprintf("%s = %s no fit + %s pruned + %s priced", quantity.Count(s.Space), quantity.Count(s.Infeasible),
		quantity.Count(s.Bounded), quantity.Count(s.Priced))
	if len(d.Head.pinned) > 0 {
		text += "; pinned: " + strings.Join(d.Head.pinned, ", ")
	}
	var keys []string
	for _, r := range s.Restricted { // --json prints them in full
		if key, _, _ := strings.Cut(r, ":"); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		text += "; partly searched: " + strings.Join(keys, ", ")
	}
	return text
}

func (d *Document) errorSentence() string {
	bar := strings.TrimSpace(spread(d.Predict))
	if bar == "" {
		bar = "unknown"
	}
	e := d.ErrorBar
	if e.Rows == 0 {
		return strings.Join(append([]string{bar + ": " + cmp.Or(e.Like, "no similar run was measured")},
			d.Head.measured...), "; ")
	}
	return fmt.Sprintf("%s from %d similar %s (%s)", bar, e.Rows, layout.Plural(e.Rows, "run"), e.Like)
}
