package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
)

// Report is the answer of `planc check`: what the planner says about the plan of a file, and how to change the file.
type Report struct {
	*planner.Check
	Format string              `json:"format"`
	Title  string              `json:"format_title"` // a file of the format in words
	Sure   string              `json:"recognized"`   // certain, likely or possible
	Files  []string            `json:"files"`
	Keys   []interop.Key       `json:"keys"`
	Uses   map[interop.Use]int `json:"uses"` // number of keys by their use
	// Warnings are probable input errors in the files, with their positions: misspelt keys.
	Warnings []string `json:"warnings"`
	Notes    []string `json:"notes"` // about the files, with their positions, and about the job
	Edits    []Edit   `json:"edits"`
	Diff     string   `json:"diff"` // of the user's file, for the best plan; "" if it changes nothing
	// DiffNote says why there is no diff for the best plan; "" if there is one.
	DiffNote string `json:"diff_note"`
	// DiffRemarks say what the diff leaves as it was: uses of a variable by other arguments.
	DiffRemarks []string `json:"diff_remarks"`
	Env         []Env    `json:"env"` // variables that belong to the best plan
	// EnvYours are the variables that belong to the checked plan.
	EnvYours []Env `json:"env_yours"`
	// Offload says that the file moves state off the device, which is not priced; "" if it does not.
	Offload string `json:"offload"`
	// Offloaded is what is known of the plan's memory if the file moves state off the device or trains adapters; null
	// if it does not, or if the plan is illegal.
	Offloaded *Offloaded `json:"offloaded"`
	// Adapters says that the file trains adapters, such as LoRA's, which is not priced; "" if it does not.
	Adapters string `json:"adapters"`
	// FailSlower is nil unless the user limits how much slower than the best the plan may be.
	FailSlower *SlowerLimit `json:"fail_slower,omitempty"`

	Source *Source `json:"-"`
}

// SlowerLimit limits how much slower than the best a plan may be.
type SlowerLimit struct {
	Limit      float64 `json:"limit"` // as a fraction of the best plan's step
	IsExceeded bool    `json:"exceeded"`
}

// Edit is an edit of the plan with what it changes in the user's file.
type Edit struct {
	planner.Edit
	Diff        string   `json:"diff"`         // unified
	DiffNote    string   `json:"diff_note"`    // why there is no diff; "" if there is one
	DiffRemarks []string `json:"diff_remarks"` // as in Report
	// IsRefused says that the format cannot express the edited plan.
	IsRefused bool `json:"cannot_export"`
}

// Env is an environment variable that belongs to a plan.
type Env struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Yours string `json:"yours"` // the value in the file; "" if it sets none
	IsSet bool   `json:"is_set"`
	Why   string `json:"why"`
	// IsUnknown says that the file does not list variables, because it is a log.
	IsUnknown bool `json:"-"`
	// Keys are those of the plan from which the value follows.
	Keys []string `json:"-"`
}

// confidenceWords are the levels of confidence.
var confidenceWords = map[interop.Confidence]string{interop.Certain: "certain", interop.Likely: "likely",
	interop.Possible: "possible"}

// NewReport checks the plan of files that were read as a question.
func NewReport(s *Source, q *planner.Question) (*Report, error) {
	say := &sayable{s, q}
	check, err := planner.NewCheckOf(q, say.limits)
	if err != nil {
		return nil, s.translated(err)
	}
	check.Diags = s.Translate(check.Diags, s.jobPath())
	r := &Report{Check: check, Format: s.Format.Name, Title: titleOf(s), Sure: confidenceWords[s.Sure],
		Files: s.Files, Keys: s.Keys, Uses: s.Counts(), Warnings: s.noteTexts(true),
		Notes: append(s.noteTexts(false), q.Notes()...),
		Edits: []Edit{}, DiffRemarks: []string{}, Source: s}
	r.Offload, r.Adapters = offload(s.Keys), adapters(s.Keys)
	r.Offloaded = offloadedOf(s.Keys, check)
	r.judgeUnpriced()
	for _, text := range r.caveats() {
		r.Message += " " + text
	}
	from := check.From()
	if note := assumedNote(say, check); note != "" {
		r.Notes = append(r.Notes, note)
	}
	for i, e := range check.Edits {
		r.Edits = append(r.Edits, Edit{Edit: e, DiffRemarks: []string{}})
		if i < s.mostDiffs() {
			r.makeDiff(&r.Edits[i])
		}
	}
	if check.Best != nil && check.Best.Plan.Plan != from {
		r.Diff, r.DiffNote, r.DiffRemarks = s.diffOf(q, from, check.Best.Plan.Plan)
		r.DiffNote += writtenNote(say, r)
	}
	r.addEnv()
	return r, nil
}

// titleOf describes the main file with its article.
func titleOf(s *Source) string {
	if s.Log != nil {
		return "a log with the arguments of " + s.Format.Tool
	}
	if doc, ok := s.Doc.(*tree.Doc); ok && doc.Syntax == tree.YAML && s.Format.Ext == scriptExt {
		return "arguments of " + s.Format.Tool + " in YAML"
	}
	return s.Format.Title
}

// scriptExt is the extension of formats whose files are scripts.
const scriptExt = ".sh"

// noteTexts returns the warnings or the other notes about the files: "run.sh:3:1: ...".
func (s *Source) noteTexts(areWarnings bool) []string {
	out := []string{}
	for _, n := range s.Notes {
		if n.IsWarning == areWarnings {
			out = append(out, n.String())
		}
	}
	return out
}

// Offloaded is what is known of the memory of a plan whose file moves state off the device, or trains adapters.
type Offloaded struct {
	Parts      []string `json:"parts"`       // of the memory, that leave the device or are not needed, at most
	LeastBytes int64    `json:"least_bytes"` // of the other parts, which stay on the device
}

// offloadedOf returns what is known of the memory of a checked plan if keys of its files offload state or train
// adapters; else nil. The parameters of a model whose adapters are trained may be in 16 bits.
func offloadedOf(all []interop.Key, check *planner.Check) *Offloaded {
	if check.Yours == nil {
		return nil
	}
	out, absent := &Offloaded{}, map[string]float64{}
	fraction := 1.0
	for i := range all {
		if f, ok := all[i].OffloadedFraction(); ok {
			fraction = f
		}
	}
	trainsAdapters := false
	for _, k := range all {
		trainsAdapters = trainsAdapters || k.TrainsAdapters()
		for _, part := range slices.Concat(k.OffloadedParts(), k.UnneededParts()) {
			if !slices.Contains(out.Parts, part) {
				out.Parts = append(out.Parts, part)
				absent[part] = 1
			}
		}
	}
	if len(out.Parts) == 0 {
		return nil
	}
	if absent["optimizer"] > 0 {
		absent["optimizer"] = fraction
	}
	isWide := check.Yours.Plan.Precision.Params == ir.F32
	if trainsAdapters && isWide && absent["params"] == 0 {
		absent["params"] = 0.5
	}
	out.LeastBytes = check.LeastBytes(absent)
	return out
}

// judgeUnpriced replaces the verdict that a plan does not fit, and its sentence, if the file offloads state or trains
// adapters: the plan may fit, unless what stays on the device does not.
func (r *Report) judgeUnpriced() {
	if r.Offloaded == nil || r.Verdict != planner.CheckNoFit {
		return
	}
	also, as := "with offload", "Without offload"
	switch {
	case r.Adapters != "" && r.Offload != "":
		also, as = "with adapters and offload", "As full training without offload"
	case r.Adapters != "":
		also, as = "with adapters", "As full training"
	}
	capacity := r.Yours.Predict.MemoryBytes.Capacity
	least := fmt.Sprintf("what stays on the device needs at least %s of %s", quantity.Bytes(r.Offloaded.LeastBytes),
		quantity.Bytes(capacity))
	if r.Offloaded.LeastBytes > capacity {
		r.Message = "This plan is legal and does not fit, also " + also + ": " + least + "."
		return
	}
	r.Verdict = planner.CheckUnpriced
	r.Message = fmt.Sprintf("This plan is legal, and whether it fits is not known. %s it is %s over, %s; %s.", as,
		quantity.Bytes(r.Over.OverBytes), r.Over.When(), least)
}

// offload says which keys of the files move state off the device; "" if none does.
func offload(all []interop.Key) string {
	keys := listed(all, (*interop.Key).Offloads)
	if keys == "" {
		return ""
	}
	return "The file offloads state (" + keys + "), which planc does not price yet: step time and memory are without " +
		"offload."
}

// adapters says which keys of the files say that only adapters are trained; "" if none does.
func adapters(all []interop.Key) string {
	keys := listed(all, (*interop.Key).TrainsAdapters)
	if keys == "" {
		return ""
	}
	return "The file trains adapters, such as LoRA's (" + keys + "), which planc does not price yet: step time and " +
		"memory are those of full training."
}

// listed returns the keys for which a condition holds, with their values.
func listed(all []interop.Key, holds func(*interop.Key) bool) string {
	var words []string
	for _, k := range all {
		if holds(&k) {
			words = append(words, strings.TrimSpace(k.Name+" "+k.Value))
		}
	}
	return strings.Join(words, ", ")
}

// EditDiff returns the diff of an edit, or why there is none, and its remarks. It makes the diff if the report of a
// large file left it out.
func (r *Report) EditDiff(i int) (text, note string, remarks []string) {
	e := &r.Edits[i]
	if e.Diff == "" && e.DiffNote == "" {
		r.makeDiff(e)
	}
	return e.Diff, e.DiffNote, e.DiffRemarks
}

// makeDiff adds the diff of an edit, or why there is none.
func (r *Report) makeDiff(e *Edit) {
	from := r.From()
	e.Diff, e.DiffNote, e.DiffRemarks = r.Source.diffOf(r.Question, from, e.Plan.Plan)
	e.IsRefused = r.Source.refusal(r.Question, from, e.Plan.Plan) != nil
	if e.Diff == "" && e.DiffNote == "" {
		e.DiffNote = fmt.Sprintf("format %s has no key that says %s", r.Format, e.Message)
	}
}

// mostDiffs returns the number of edits for which a diff is made. Each reads the file again.
func (s *Source) mostDiffs() int {
	const (
		large    = 1 << 18 // bytes of a file that is read in more than about a millisecond
		ofLarge  = 1
		ofOthers = 100
	)
	size := 0
	for _, f := range s.files {
		size += len(f.Data)
	}
	if size > large {
		return ofLarge
	}
	return ofOthers
}

// addEnv adds the environment variables of the checked plan, and of the best one, or again of the checked one if no
// plan fits. If the file leaves the keys from which a variable follows to planc, the checked plan does not need it.
func (r *Report) addEnv() {
	yours := r.From()
	r.Env, r.EnvYours = r.EnvOf(yours), []Env{}
	for _, v := range r.Env {
		if !slices.ContainsFunc(v.Keys, func(key string) bool { return !r.Source.Has("plan." + key) }) {
			r.EnvYours = append(r.EnvYours, v)
		}
	}
	if r.Best != nil {
		r.Env = r.EnvOf(r.Best.Plan.Plan)
	}
}

// EnvOf returns the environment variables that belong to a plan, with their values in the file.
func (r *Report) EnvOf(plan ir.Plan) []Env {
	out := []Env{}
	for _, v := range r.Source.valuesOf(r.Question, plan) {
		if v.Env && !v.IsAbsent {
			yours, isSet := r.Source.Import.Env[v.Key]
			out = append(out, Env{v.Key, v.Text, yours, isSet, v.Why, r.Source.Log != nil, v.Plan})
		}
	}
	return out
}

// target returns what an export of a plan of a question is about.
func target(q *planner.Question, plan ir.Plan) *interop.Target {
	return &interop.Target{Plan: plan, Job: q.Job, Hardware: q.Hardware}
}

// valuesOf returns the keys of the format that say a plan.
func (s *Source) valuesOf(q *planner.Question, plan ir.Plan) []interop.Value {
	plan = atOwnStage(s.Import, plan)
	switch {
	case s.Import.Values != nil:
		return s.Import.Values(target(q, plan))
	case s.Format.Values == nil:
		return nil
	}
	return s.Format.Values(target(q, plan))
}

// diffOf returns the change of the user's file from one plan to another, as a unified diff, or why there is none.
func (s *Source) diffOf(q *planner.Question, from, to ir.Plan) (text, note string, remarks []string) {
	doc, note := s.edited(q, from, to)
	if note != "" {
		return "", note, []string{}
	}
	return s.unified(doc), "", append(remarksOf(doc), batchRemarks(s, q, from, to)...)
}

// batchRemarks say the batch of the script's data loader for another plan, if no key and no variable of the format says
// it: with Accelerate's plugins.
func batchRemarks(s *Source, q *planner.Question, from, to ir.Plan) []string {
	says := func(v interop.Value) bool {
		return slices.Contains(v.Plan, "micro_batch") || v.Env && slices.Contains(v.Plan, "micro_batches")
	}
	if from.MicroBatch == to.MicroBatch || slices.ContainsFunc(s.valuesOf(q, to), says) {
		return nil
	}
	return []string{fmt.Sprintf("%s has no batch: the script's data loader must have a batch of %d a device, not %d",
		s.Main(), to.MicroBatch, from.MicroBatch)}
}

// remarksOf returns what the edits of a document leave as it was.
func remarksOf(doc interop.Document) []string {
	if r, ok := doc.(interop.Remarker); ok {
		return append([]string{}, r.Remarks()...)
	}
	return []string{}
}

// edited returns the user's file with the change from one plan to another, or why it cannot be changed.
func (s *Source) edited(q *planner.Question, from, to ir.Plan) (doc interop.Document, note string) {
	if s.Format.Values == nil || s.Doc == nil && s.Log == nil {
		return nil, notEdited(s.Format)
	}
	if err := s.refusal(q, from, to); err != nil {
		return nil, noteOf(err)
	}
	if notes := (&sayable{s, q}).unsaidNotes(from, to); len(notes) > 0 {
		return nil, notes[0]
	}
	if s.Log != nil {
		return nil, byHand(s, q, from, to)
	}
	fresh, err := s.Format.Import(s.files, s.options)
	if err != nil || fresh.Doc == nil {
		return nil, notEdited(s.Format)
	}
	for _, v := range newChange(from, to).edits(fresh.Doc.Get, s.valuesOf(q, from), s.valuesOf(q, to)) {
		if v.Env && !s.setsEnv(v.Key) {
			continue // it is not part of the file
		}
		if err := set(fresh.Doc, v); err != nil {
			return nil, noteOf(err)
		}
	}
	if err := finish(fresh.Doc); err != nil {
		return nil, noteOf(err)
	}
	return fresh.Doc, ""
}

// byHand says how the user changes the script of a run whose log was read.
func byHand(s *Source, q *planner.Question, from, to ir.Plan) string {
	var set, remove, removeIfThere []string
	edits := newChange(from, to).edits(s.Log.Get, s.valuesOf(q, from), s.valuesOf(q, to))
	for _, v := range edits {
		text, isSet := s.Log.Get(v.Key)
		switch {
		case v.IsAbsent && slices.Contains(s.Log.Unsure, v.Key):
			removeIfThere = append(removeIfThere, v.Key)
		case v.IsAbsent && (isSet || v.Env):
			remove = append(remove, v.Key)
		case v.IsAbsent || isSet && text == v.Text:
		case v.Env:
			set = append(set, v.Key+"="+v.Text)
		default:
			set = append(set, strings.TrimSpace(v.Key+" "+v.Text))
		}
	}
	remove = append(remove, s.Log.Leaving(edits)...)
	var do []string
	if len(set) > 0 {
		do = append(do, "set "+strings.Join(set, ", "))
	}
	if len(remove) > 0 {
		do = append(do, "remove "+strings.Join(remove, ", "))
	}
	if len(removeIfThere) > 0 {
		do = append(do, "remove "+strings.Join(removeIfThere, " or ")+" if the script has it")
	}
	return "a log is not edited: in the script that starts the training, " + strings.Join(do, ", and ")
}

// notEdited says why files of a format are not edited. Formats with keys have files that only list what a run used.
func notEdited(f *interop.Format) string {
	if f.Values != nil {
		return "planc does not edit the list of arguments in a log: give the script that starts the training instead"
	}
	return fmt.Sprintf("planc does not edit files of format %s", f.Name)
}

// noteOf returns an error as a note: without codes, because whoever reports the note adds a code.
func noteOf(err error) string {
	var diags ir.Diags
	if !errors.As(err, &diags) {
		return err.Error()
	}
	var lines []string
	for _, d := range diags {
		lines = append(lines, strings.TrimSuffix(d.String(), fmt.Sprintf(" [%s]", d.Code)))
	}
	return strings.Join(lines, "\n")
}

// expressedBy returns the condition that a format can express a plan of a question; nil if it can express all.
func expressedBy(f *interop.Format, q *planner.Question) func(*ir.Plan) bool {
	switch {
	case f.Refusals != nil:
		return func(plan *ir.Plan) bool { return len(f.Refusals(target(q, *plan))) == 0 }
	case f.Engine != "" && f.Write != nil:
		return func(plan *ir.Plan) bool {
			_, err := f.Write(target(q, *plan))
			return err == nil
		}
	}
	return nil
}

// ownRefusals returns why files cannot express a plan that others of their format can; nil if they can.
func ownRefusals(im *interop.Import, q *planner.Question, plan ir.Plan) error {
	if im.Refusals == nil {
		return nil
	}
	return im.Refusals(target(q, atOwnStage(im, plan))).Err()
}

// setsEnv reports whether the file sets an environment variable, or may set it because it is a script.
func (s *Source) setsEnv(name string) bool {
	_, isSet := s.Import.Env[name]
	return isSet || s.Format.Ext == ".sh"
}

// refusal returns why the format cannot express a plan; nil if it can, or if it cannot express the plan of the file
// either, for the same reason: then something else of the job is why.
func (s *Source) refusal(q *planner.Question, from, to ir.Plan) error {
	if err := ownRefusals(s.Import, q, to); err != nil {
		return err
	}
	if err := cannotWrite(s, q, from, to); err != nil {
		return err
	}
	if !(&sayable{s, q}).hasTypes(from, atOwnStage(s.Import, to)) {
		return errors.New("the trainer computes this plan in other types than yours, or keeps no copy of the weights " +
			"in FP32")
	}
	return nil
}

// cannotWrite returns why the format has no keys for a plan; nil as in refusal.
func cannotWrite(s *Source, q *planner.Question, from, to ir.Plan) error {
	if s.Format.Write == nil {
		return nil
	}
	_, err := s.Format.Write(target(q, atOwnStage(s.Import, to)))
	if err == nil {
		return nil
	}
	_, same := s.Format.Write(target(q, atOwnStage(s.Import, from)))
	if same != nil && same.Error() == err.Error() {
		return nil
	}
	return err
}

// unified returns the changes of all files that a document edits, as one patch.
func (s *Source) unified(doc interop.Document) (patch string) {
	parts, ok := doc.(interop.Parts)
	if !ok {
		parts = interop.Parts{{Name: s.Main(), Doc: doc}}
	}
	for _, part := range parts {
		patch += unified(part.Name, s.original(part.Name), part.Doc.Bytes())
	}
	return patch
}

// original returns a file as it was read: one that is given, or one that a given file names.
func (s *Source) original(name string) []byte {
	i := slices.IndexFunc(s.files, func(f interop.File) bool { return f.Name == name })
	if i < 0 && s.options.Read != nil {
		data, err := s.options.Read(name)
		if err == nil {
			return data
		}
	}
	return s.files[max(0, i)].Data
}

// unified returns a unified diff without its first line; "" if nothing differs. Its header names standard input in
// words, because - is the name of no file.
func unified(name string, old, edited []byte) string {
	if name == "-" {
		name = "standard input"
	}
	_, text, _ := bytes.Cut(diff.Diff(name, old, name, edited), []byte("\n"))
	return string(text)
}
