package screen

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
)

// Plan formats the answer of planc plan. docs/reading.md explains its lines.
func Plan(d *Document) string {
	var b strings.Builder
	b.WriteString(d.titleLines())
	b.WriteString("\n")
	b.WriteString(layout.Flow("PLAN", 9, " · ", planWords(d.Plan.Plan)))
	b.WriteString(d.rateLines())
	b.WriteString(d.memoryLine())
	b.WriteString(d.adviceLines(lowerLabel, planner.AdviceTight))
	b.WriteString(d.timeLine())
	if d.Training != nil {
		b.WriteString(layout.Prose("train", 9, trainingSentence(d.Training)))
	}
	if d.Goal != nil {
		b.WriteString(layout.Prose("goal", 9, goalSentence(d.Goal, d.Predict.TokensPerS, d.Head.device)))
	}
	if len(d.Shown()) > 0 {
		b.WriteString("\n" + d.alternativesTable())
	}
	b.WriteString("\n" + layout.Prose("exact", 9, d.countSentence()))
	b.WriteString(d.adviceLines(lowerLabel, planner.AdviceFastest, planner.AdviceSimpler, planner.AdviceFaster))
	if len(d.assumedWords()) > 0 {
		b.WriteString(layout.Flow("assumed", 9, " · ", d.assumedWords()))
	}
	if d.Head.emulationNote != "" {
		b.WriteString(layout.Prose("note", 9, d.Head.emulationNote))
	}
	if d.Head.lock != "" {
		b.WriteString(layout.Prose("lock", 9, d.Head.lock))
	}
	b.WriteString("\n" + d.Head.command + "\n")
	return b.String()
}

func (d *Document) titleLines() string {
	h := d.Head
	model := []string{fmt.Sprintf("%s  %s params", layout.Clip(d.Model.Name, maxNameWidth),
		amount.Params(d.Model.Params)),
		fmt.Sprintf("seq %d", h.seqLen),
		fmt.Sprintf("batch %d (%s tok)", h.globalBatch, amount.Short(float64(h.globalBatch)*float64(h.seqLen))),
		fmt.Sprintf("%s %d B/param", h.precision, d.Predict.BytesPerParam)}
	model = append(model, h.rounding...)
	if active := d.Model.ParamsActive; active < d.Model.Params {
		model[0] += fmt.Sprintf(", %s active", amount.Params(active))
	}
	usable := quantity.Bytes(d.Predict.MemoryBytes.Capacity)
	if h.memory > 0 {
		usable = fmt.Sprintf("%s of %s usable", strings.TrimSuffix(usable, unit(quantity.Bytes(h.memory))),
			quantity.Bytes(h.memory))
	}
	hardware := append([]string{fmt.Sprintf("%s = %d %s", d.clusterName(), d.Cluster.Devices, d.Cluster.GPU)},
		slices.Concat(h.links, h.measured)...)
	return withEngine(layout.Flow("", 0, " · ", model), d.engineWords(), append(hardware, usable))
}

// engineWords returns "engine NAME", the engine whose runtime is priced.
func (d *Document) engineWords() string { return "engine " + d.Engine }

// withEngine joins the lines of the title and the hardware. The second line begins with the engine, even if the title
// is longer than one line.
func withEngine(title, engine string, hardware []string) string {
	first, rest, _ := strings.Cut(title, "\n")
	if rest == "" {
		return title + layout.Flow("", 0, " · ", append([]string{engine}, hardware...))
	}
	words := append([]string{engine}, strings.Split(strings.ReplaceAll(strings.TrimSuffix(rest, "\n"), "\n",
		" · "), " · ")...)
	out := first + "\n" + layout.Flow("", 0, " · ", words)
	if len(hardware) > 0 {
		out += layout.Flow("", 0, " · ", hardware)
	}
	return out
}

// unit returns the last word of a size with the space before it: " GiB".
func unit(size string) string { return size[strings.LastIndexByte(size, ' '):] }

// clusterName returns the number of nodes and the cluster's name: 4 × dgx-h100.
func (d *Document) clusterName() string {
	return fmt.Sprintf("%d × %s", d.Cluster.Nodes, layout.Clip(d.Cluster.Name, maxNameWidth))
}

// maxNameWidth is the maximal width in columns of a user's name on a screen. Documents contain the whole name.
const maxNameWidth = 44

// planWords returns the parts of a plan as screens print them. A part is not broken over lines.
func planWords(p ir.Plan) []string {
	words := strings.Split(p.String(), " · ")
	if uneven := unevenWords(p); uneven != "" {
		words = append(words, uneven)
	}
	return words
}

func (d *Document) rateLines() string {
	p := d.Predict
	step := layout.Pad("step     "+quantity.Seconds(float64(p.StepS))+spread(p), 28)
	tokens := layout.Pad(amount.Short(p.TokensPerS)+" tokens/s", 20)
	each := amount.Short(p.TokensPerSGPU) + " tokens/s per " + d.Head.device
	out := strings.TrimRight(step+tokens+each, " ") + "\n"
	if p.MFU <= 0 {
		return out
	}
	basis := p.FlopsFormula
	if d.Head.peak != "" {
		basis += ", " + d.Head.peak
	}
	line := layout.Pad(fmt.Sprintf("mfu      %s (%s)", quantity.Percent(p.MFU), basis), 57)
	if p.ModelTFLOPS > 0 && p.HardwareTFLOPS > 0 {
		line += "  hardware " + quantity.Percent(p.MFU*p.HardwareTFLOPS/p.ModelTFLOPS)
	}
	return out + strings.TrimRight(line, " ") + "\n"
}

// spread returns the error bar of the step time: " ± 6 %", or "" if there is none.
func spread(p costmodel.Predict) string {
	if p.StepS <= 0 || p.StepSHigh <= p.StepSLow {
		return ""
	}
	return fmt.Sprintf(" ± %.0f %%", math.Round(100*float64((p.StepSHigh-p.StepSLow)/2/p.StepS)))
}

func (d *Document) memoryLine() string {
	m := d.Predict.MemoryBytes
	total, capacity := quantity.Bytes(m.Total), quantity.Bytes(m.Capacity)
	if !d.Fits {
		total, capacity = quantity.BytesPair(m.Total, m.Capacity)
	}
	line := fmt.Sprintf("memory   %s of %s", total, strings.TrimSuffix(capacity, unit(total)))
	if !d.Fits {
		return fmt.Sprintf("%s does not fit: %s over\n", layout.Pad(line, 32), quantity.Bytes(m.Total-m.Capacity))
	}
	fits := "fits (margin assumed)" // planc's memory on GPUs has not been measured, so there is no probability
	if d.Head.isMemoryMeasured {
		fits = "fits (p " + quantity.Probability(d.Predict.FitProbability) + ")"
	}
	fullest := "fullest: all ranks equal"
	if d.Plan.Plan.PP > 1 {
		fullest = fmt.Sprintf("fullest: stage %d", d.Stage)
	}
	return layout.Pad(layout.Pad(line, 32)+" "+fits, 54) + " " + fullest + "\n"
}

func (d *Document) timeLine() string {
	var words []string
	for _, s := range shares(d.Predict.Time) {
		if share := quantity.Percent(s.value / float64(d.Predict.StepS)); share != "0.0 %" {
			words = append(words, s.name+" "+share)
		}
	}
	return layout.Flow("time", 9, "  ", words)
}

// countSentence returns the counts of the search in one line.
func (d *Document) countSentence() string { return SearchSentence(d.Search) }

// SearchSentence says how many plans a search looked at, and what became of them.
func SearchSentence(s planner.SearchSummary) string {
	return fmt.Sprintf("%s %s: %s do not fit, %s cannot be faster, %s priced",
		quantity.Count(s.Space), layout.Plural(s.Space, "plan"), quantity.Count(s.Infeasible),
		quantity.Count(s.Bounded), quantity.Count(s.Priced))
}

func (d *Document) assumedWords() (words []string) {
	for i, g := range d.Assumed {
		w := g.Path
		if g.Value != "" {
			w += " " + g.Value
		}
		// if several consecutive entries have the same reason, it is printed after the last one
		if g.Why != "" && (i+1 == len(d.Assumed) || d.Assumed[i+1].Why != g.Why || g.Value != "") {
			w += " (" + g.Why + ")"
		}
		words = append(words, w)
	}
	if d.Head.barSource != "" {
		words = append(words, d.Head.barSource)
	}
	return words
}

// Columns of the table of alternatives: where names, step times and memory end, and reasons begin.
const (
	nameColumn   = 30
	stepColumn   = 38
	memoryColumn = 50
	whyColumn    = 52
)

func (d *Document) alternativesTable() string {
	var b strings.Builder
	b.WriteString(row("  NEXT BEST", "STEP", "MEMORY", "BECAUSE"))
	for _, a := range d.Shown() {
		step := "no fit"
		if a.SlowerBy != nil {
			step = quantity.Signed(*a.SlowerBy)
		}
		b.WriteString(row("  "+d.Label(a), step, quantity.Bytes(a.Predict.MemoryBytes.Total), d.Reason(a)))
	}
	return b.String()
}

// DefaultRows is the default number of alternatives on a screen.
const DefaultRows = 6

// Shown returns the alternatives of the screen. Up to a third of the rows is reserved for plans that do not fit.
func (d *Document) Shown() []planner.Alternative {
	rows, all := d.Head.Rows, d.distinct()
	reserved := rows / 3
	fit := slices.IndexFunc(all, func(a planner.Alternative) bool { return a.NoFit != nil })
	if fit < 0 {
		fit = len(all)
	}
	unfit := all[fit:]
	first := min(fit, rows-min(reserved, len(unfit)))
	return slices.Concat(all[:first], unfit[:min(len(unfit), rows-first)])
}

// others returns the alternatives that differ from the plan in time or memory. A plan with another order of axes, for
// example, may not differ. Documents contain all alternatives.
func (d *Document) others() (out []planner.Alternative) {
	for _, a := range d.Alternatives {
		if d.Fastest != nil && a.Plan == d.Fastest.Plan {
			continue // it has its own line
		}
		if a.NoFit != nil || d.Reason(a) != planner.SameTime ||
			a.Predict.MemoryBytes.Total != d.Predict.MemoryBytes.Total {
			out = append(out, a)
		}
	}
	return out
}

// distinct returns the best of the others for each label. Plans have the same label if they differ only in keys that
// labels leave out.
func (d *Document) distinct() []planner.Alternative {
	seen := map[string]bool{}
	return slices.DeleteFunc(d.others(), func(a planner.Alternative) bool {
		name := d.Label(a)
		duplicate := seen[name]
		seen[name] = true
		return duplicate
	})
}

// row formats a line of the table. A name that is too long gets its own line. A long reason is wrapped in its column.
func row(name, step, memory, why string) string {
	var b strings.Builder
	if layout.Width(name) > nameColumn || layout.Width(name)+layout.ColumnGap+layout.Width(step) > stepColumn {
		b.WriteString(layout.Prose("", 2, name))
		name = ""
	}
	line := layout.Pad(name, nameColumn) + layout.PadLeft(step, stepColumn-nameColumn)
	line += layout.PadLeft(memory, memoryColumn-stepColumn)
	b.WriteString(layout.Prose(line, whyColumn, why))
	return b.String()
}

// nextBest returns the fastest alternative that fits and has no line of its own; ok is false if there is none.
func (d *Document) nextBest() (a planner.Alternative, ok bool) {
	for _, a := range d.others() {
		if a.SlowerBy != nil {
			return a, true
		}
	}
	return a, false
}
