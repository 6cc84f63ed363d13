package checkscreen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/migrate"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
)

// Options say what a screen shows.
type Options struct {
	HasKeys bool // the whole table of keys
}

// Screen formats a report.
func Screen(r *migrate.Report, o Options) string {
	var b strings.Builder
	b.WriteString(layout.Prose("", 0, r.Message))
	for _, text := range r.Warnings {
		b.WriteString(layout.Prose("", 0, text))
	}
	b.WriteString(title(r) + "\n")
	b.WriteString(plans(r))
	edits := shownEdits(r)
	b.WriteString(editTable(r, edits))
	b.WriteString(changeLines(r))
	b.WriteString(diffs(r, edits))
	b.WriteString(envLines(planEnvs(r, edits)))
	b.WriteString(noteLines(r))
	b.WriteString(keyLines(r, o))
	b.WriteString("\n" + layout.Flow("more", labelWidth, " · ", more(r, edits, o)))
	return b.String()
}

// title says what the files were taken for, and the question.
func title(r *migrate.Report) string {
	names := slices.Clone(r.Files)
	for i, name := range names {
		if name == "-" {
			names[i] = "standard input"
		}
	}
	file := strings.Join(names, ", ") + ": " + r.Title
	if r.Sure != "certain" {
		file += " (" + r.Sure + ")"
	}
	train := r.Question.Train
	return layout.Flow("", 0, " · ", []string{file, "engine " + r.Engine, train.Precision.Compute}) +
		layout.Flow("", 0, " · ", []string{fmt.Sprintf("%s  %s params", r.Model.Name, amount.Params(r.Model.Params)),
			fmt.Sprintf("seq %d", train.SeqLen), fmt.Sprintf("batch %d", train.GlobalBatch),
			fmt.Sprintf("%d × %s = %d %s", r.Cluster.Nodes, r.Cluster.Name, r.Cluster.Devices, r.Cluster.GPU)})
}

// plans shows the checked plan and the best one.
func plans(r *migrate.Report) string {
	var b strings.Builder
	if r.Yours != nil {
		b.WriteString(plan("YOURS", r.Yours, r.Yours.Chosen, r.Question.HasMeasuredMemory()))
		if r.Offload != "" {
			b.WriteString(layout.Prose("", labelWidth, "step and memory without offload"))
		}
		if r.Adapters != "" {
			b.WriteString(layout.Prose("", labelWidth, "step and memory of full training"))
		}
		b.WriteString(chosenLine(r))
	} else {
		b.WriteString(layout.Flow("YOURS", labelWidth, " · ", strings.Split(r.From().String(), " · ")))
		for i, rule := range r.Rules[1:] { // the first is in the message
			b.WriteString(layout.Prose([]string{"illegal", ""}[min(i, 1)], labelWidth, "also: "+rule.Message))
		}
	}
	switch {
	case r.Best == nil:
		b.WriteString(layout.Prose("BEST", labelWidth, NoBest(r)))
	case r.Yours != nil && r.Best.Plan == r.Yours.Plan:
		b.WriteString(layout.Prose("BEST", labelWidth, "the same plan"))
	default:
		b.WriteString(plan("BEST", r.Best, nil, r.Question.HasMeasuredMemory()))
	}
	if words := r.WhyWords(); words != "" && words != planner.SameTime && r.Best.Plan != r.Yours.Plan {
		b.WriteString(layout.Prose("why", labelWidth, "yours has "+words))
	}
	return b.String()
}

// labelWidth is the width of the labels on the left.
const labelWidth = 9

// chosenMark marks terms of a plan whose values planc chose.
const chosenMark = "*"

// termKeys are the keys that a term of a plan says, by the first word of the term.
var termKeys = map[string][]string{"micro_batch": {"micro_batch"}, "recompute": {"recompute", "recompute_layers"},
	"zero": {"zero", "zero_group"}, "pp": {"pp", "vpp"}, "cp": {"cp", "cp_kind"}, "gpipe": {"schedule"},
	"zb-h1": {"schedule"}, "zb-v": {"schedule"}}

// markChosen returns the terms of a plan, those with a mark whose values planc chose.
func markChosen(terms, chosen []string) (out []string) {
	for _, term := range terms {
		word, _, _ := strings.Cut(term, " ")
		keys := append([]string{word}, termKeys[word]...)
		if slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(chosen, key) }) {
			term += chosenMark
		}
		out = append(out, term)
	}
	return out
}

// chosenLine explains the mark: which keys of the plan the file does not say.
func chosenLine(r *migrate.Report) string {
	if len(r.Yours.Chosen) == 0 {
		return ""
	}
	return layout.Prose("", labelWidth, chosenMark+" chosen by planc, because the file does not say it: "+
		strings.Join(r.Yours.Chosen, ", "))
}

// plan shows a plan with its step and its memory. Terms with chosen keys are marked. isMeasured says that memory of
// such plans was measured, so that the probability to fit has a basis.
func plan(label string, p *planner.CheckedPlan, chosen []string, isMeasured bool) string {
	m := p.Predict.MemoryBytes
	words := []string{quantity.Seconds(float64(p.Predict.StepS)) + " a step"}
	if p.Predict.MFU > 0 {
		words = append(words, "mfu "+quantity.Percent(p.Predict.MFU))
	}
	memory := fmt.Sprintf("%s of %s", quantity.Bytes(m.Total), quantity.Bytes(m.Capacity))
	if !p.Fits {
		memory += ": " + quantity.Bytes(m.Over()) + " over"
	} else if isMeasured {
		memory += ", fits (p " + quantity.Probability(p.Predict.FitProbability) + ")"
	} else {
		memory += ", fits"
	}
	terms := markChosen(strings.Split(p.Plan.Plan.String(), " · "), chosen)
	return layout.Flow(label, labelWidth, " · ", terms) + layout.Flow("", labelWidth, " · ", append(words, memory))
}

// NoBest says why there is no best plan: none fits, or none is legal.
func NoBest(r *migrate.Report) string {
	if r.Search.Space > 0 {
		return "no plan that engine " + r.Engine + " can run fits"
	}
	batch, nodes := r.Question.Train.GlobalBatch, r.Cluster.Nodes
	devices := r.Cluster.Devices
	text := fmt.Sprintf("no plan that engine %s can run is legal for batch %d on %d devices", r.Engine, batch, devices)
	if batch%devices == 0 {
		return text
	}
	var flags []string
	for _, n := range []int{batch / devices * devices, (batch/devices + 1) * devices} {
		if n > 0 {
			flags = append(flags, fmt.Sprintf("--global-batch %d", n))
		}
	}
	flags = append(flags, nodeFlags(batch, nodes, devices/nodes)...)
	return text + "; try " + orWords(flags)
}

// nodeFlags returns flags for the numbers of nodes next to a number, below and above it, whose devices divide a batch.
func nodeFlags(batch, nodes, perNode int) (flags []string) {
	isWhole := func(n int) bool { return batch%(n*perNode) == 0 }
	for n := nodes - 1; n > 0; n-- {
		if isWhole(n) {
			flags = append(flags, fmt.Sprintf("--nodes %d", n))
			break
		}
	}
	for n := nodes + 1; n <= 2*nodes; n++ {
		if isWhole(n) {
			return append(flags, fmt.Sprintf("--nodes %d", n))
		}
	}
	return flags
}

// orWords joins words: "a, b or c".
func orWords(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// numbered is an edit with its number, which --edit takes.
type numbered struct {
	migrate.Edit
	number int
}

// Limits of the table of edits.
const (
	mostEdits = 6
	mostUnfit = 2
)

// shownEdits returns the edits that a screen shows: of each combination of keys the best, if it helps. Edits that are
// faster and do not fit follow.
func shownEdits(r *migrate.Report) (out []numbered) {
	seen, unfit := map[string]bool{}, 0
	for i, e := range r.Edits {
		keys := strings.Join(e.Keys, " ")
		switch {
		case seen[keys] || e.IsRefused:
			continue
		case e.Fits && (len(out) >= mostEdits || !helps(r, &e) || len(out) > 0 && isMuchSlower(&e)):
			continue
		case !e.Fits && (r.Verdict != planner.CheckFine || e.SlowerBy == nil || *e.SlowerBy >= -planner.LeastGain ||
			unfit == mostUnfit):
			continue
		case !e.Fits:
			unfit++
		}
		seen[keys] = true
		out = append(out, numbered{e, i + 1})
	}
	return out
}

// helps reports whether an edit that fits is worth making: it is faster, or the checked plan cannot run.
func helps(r *migrate.Report, e *migrate.Edit) bool {
	return r.Verdict != planner.CheckFine || *e.SlowerBy <= -planner.LeastGain
}

// isMuchSlower reports whether an edit costs so much time that nobody makes it unless nothing else fits.
func isMuchSlower(e *migrate.Edit) bool {
	const limit = 0.5
	return e.SlowerBy != nil && *e.SlowerBy > limit
}

// editTable shows edits, one at a time, with what each is worth.
func editTable(r *migrate.Report, edits []numbered) string {
	if len(edits) == 0 {
		if r.Verdict == planner.CheckFine {
			return "\n" + layout.Prose("EDITS", labelWidth, "no change of one key is faster and fits")
		}
		if r.Best == nil && r.Search.Space == 0 {
			return "\n" + layout.Prose("EDITS", labelWidth, "no change of one or two keys is legal")
		}
		return "\n" + layout.Prose("EDITS", labelWidth, "no change of one or two keys fits")
	}
	columns := []layout.Column{layout.Left("EDITS"), layout.Left("SINGLE CHANGES"), layout.Right("STEP"),
		layout.Right("MEMORY"), layout.Left("")}
	var rows [][]string
	isOutside := false
	for _, e := range edits {
		step, memory := "", quantity.Bytes(e.Predict.MemoryBytes.Total)
		switch {
		case e.SlowerBy != nil:
			step, memory = quantity.Signed(*e.SlowerBy), signedBytes(*e.MemoryChange)
		case e.SlowerThanBest != nil:
			step = quantity.Seconds(float64(e.Predict.StepS))
		}
		fits := "fits"
		if e.NoFit != nil {
			fits = quantity.Bytes(e.NoFit.OverBytes) + " over"
		}
		if e.DiffNote != "" && r.Source.Doc != nil {
			fits += ", outside the file"
			isOutside = true
		}
		rows = append(rows, []string{fmt.Sprint(e.number), e.Message, step, memory, fits})
	}
	table := "\n" + layout.Table(columns, rows)
	if !slices.ContainsFunc(edits, func(e numbered) bool { return e.Fits }) {
		table += "No single edit is faster and fits.\n"
	}
	if isOutside {
		table += "Outside the file: the training code or its environment says it, not this file.\n"
	}
	return table
}

// signedBytes returns a change of memory: "+12.0 GiB".
func signedBytes(n int64) string {
	if n < 0 {
		return quantity.Bytes(n)
	}
	return "+" + quantity.Bytes(n)
}

// changeLines shows changes of the job under which the plan fits.
func changeLines(r *migrate.Report) string {
	if len(r.Changes) == 0 {
		return ""
	}
	first := "\nor change the job:"
	if r.Best == nil && !r.Changes[0].KeepsAll {
		first = "\nno plan fits; a change of the job under which one does:"
	}
	out := first + "\n"
	for _, c := range r.Changes {
		words := []string{c.Args, quantity.Seconds(float64(c.Predict.StepS)) + " a step",
			quantity.Bytes(c.Predict.MemoryBytes.Total)}
		out += layout.Flow("  ", 2, " · ", words)
	}
	return out
}

// firstDiff returns the edit whose diff is shown: of those that fit, the first with a diff, or else the first. It is
// nil if no edit fits.
func firstDiff(edits []numbered) *numbered {
	i := slices.IndexFunc(edits, func(e numbered) bool { return e.Fits && e.Diff != "" })
	if i < 0 {
		i = slices.IndexFunc(edits, func(e numbered) bool { return e.Fits })
	}
	if i < 0 {
		return nil
	}
	return &edits[i]
}

// diffs shows the change of the user's file for one edit, and for the best plan.
func diffs(r *migrate.Report, edits []numbered) string {
	out := ""
	if e := firstDiff(edits); e != nil {
		out += diff(fmt.Sprintf("Edit %d, %s:", e.number, e.Message), e.Diff, e.DiffNote, e.DiffRemarks)
		if e.Diff == r.Diff && e.DiffNote == r.DiffNote {
			return out
		}
	}
	return out + diff("The best plan:", r.Diff, r.DiffNote, r.DiffRemarks)
}

// diff shows one change, and then what it leaves as it was.
func diff(title, text, note string, remarks []string) string {
	switch {
	case note != "":
		return "\n" + layout.Prose("", 0, title+" "+note)
	case text == "":
		return ""
	}
	out := "\n" + title + "\n" + text
	for _, remark := range remarks {
		out += layout.Prose("", 0, remark)
	}
	return out
}

// noteLines shows the notes about the files.
func noteLines(r *migrate.Report) (out string) {
	for i, text := range r.Notes {
		label := ""
		if i == 0 {
			label, out = "notes", "\n"
		}
		out += layout.Prose(label, labelWidth, text)
	}
	return out
}

// keyLines accounts for the keys of the files: their numbers, and those that are not in the job.
func keyLines(r *migrate.Report, o Options) string {
	if o.HasKeys {
		return "\n" + keyTable(r)
	}
	var words []string
	for _, use := range interop.Uses {
		if n := r.Uses[use]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, useWords(r, use)))
		}
	}
	out := "\n" + layout.Flow("keys", labelWidth, " · ", words)
	var shown []string
	for i := range r.Keys {
		k := &r.Keys[i]
		if k.Use != interop.Unsupported && k.Use != interop.IgnoredByTool {
			continue
		}
		shown = append(shown, where(k, r.Files[0]))
		if i+1 < len(r.Keys) && r.Keys[i+1].Use == k.Use && r.Keys[i+1].Note == k.Note {
			continue // one text for both
		}
		out += layout.Prose("", labelWidth, strings.Join(shown, ", ")+": "+useWords(r, k.Use)+note(k))
		shown = nil
	}
	return out
}

// useWords returns what import does with a key, in words: "used", "ignored by DeepSpeed".
func useWords(r *migrate.Report, use interop.Use) string {
	switch use {
	case interop.Taken:
		return "used"
	case interop.IgnoredByTool:
		return "ignored by " + r.Source.Format.Tool
	}
	return string(use)
}

// where names a key with its value, its line, and its file unless that is the main one.
func where(k *interop.Key, main string) string {
	s := strings.TrimSpace(k.Name + " " + layout.Clip(k.Value, longestValue))
	switch {
	case k.Pos.Line > 0 && k.Pos.File != main && k.Pos.File != "":
		s += fmt.Sprintf(" (%s line %d)", k.Pos.File, k.Pos.Line)
	case k.Pos.Line > 0:
		s += fmt.Sprintf(" (line %d)", k.Pos.Line)
	}
	return s
}

// longestValue is the width to which values of keys are cut.
const longestValue = 24

// note returns the note of a key after a semicolon.
func note(k *interop.Key) string {
	if k.Note == "" {
		return ""
	}
	return "; " + k.Note
}

// widestKey is the width of a key, with its value and its line, above which its use begins on the next line.
const widestKey = 48

// keyTable lists all keys by their use.
func keyTable(r *migrate.Report) string {
	columns := []layout.Column{layout.LeftUpTo("KEY", widestKey), layout.Left("USE")}
	var rows [][]string
	for _, use := range interop.Uses {
		for _, k := range r.Keys {
			if k.Use != use {
				continue
			}
			text := useWords(r, use) + note(&k)
			if len(k.As) > 0 {
				text = strings.Join(k.As, ", ")
			}
			rows = append(rows, []string{where(&k, r.Files[0]), text})
		}
	}
	return layout.Table(columns, rows)
}

// piped returns a flag that prints a diff, with the command that applies the diff if there is one.
func piped(flag, diff string) string {
	if command := shell.Patch(diff); command != "" {
		return flag + " | " + command
	}
	return flag
}

// more returns the flags to add to the command.
func more(r *migrate.Report, edits []numbered, o Options) []string {
	var words []string
	if e := firstDiff(edits); e != nil && e.Diff != "" {
		words = append(words, piped(fmt.Sprintf("--edit %d", e.number), e.Diff))
	}
	if r.Diff != "" {
		words = append(words, piped("--edit best", r.Diff))
	}
	if !o.HasKeys {
		words = append(words, "--keys")
	}
	return append(words, "--json")
}
