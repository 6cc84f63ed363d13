package migrate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/planner"
)

// Report is the answer of `planc check`: what the planner says about the plan of a file, and how to change the file.
type Report struct {
	*planner.Check
	Format string              `json:"format"`
	Title  string              `json:"format_title"` // a file of the format in words
	Sure   string              `json:"recognized"`   // certain, likely or possible
	Files  []string            `json:"files"`
	Keys   []interop.Key       `json:"keys"`
	Uses   map[interop.Use]int `json:"uses"`  // number of keys by their use
	Notes  []string            `json:"notes"` // about the files, with their positions
	Edits  []Edit              `json:"edits"`
	Diff   string              `json:"diff"` // of the user's file, for the best plan; "" if it changes nothing
	// DiffNote says why there is no diff for the best plan; "" if there is one.
	DiffNote string `json:"diff_note"`
	Env      []Env  `json:"env"` // variables that belong to the best plan
	// Offload says that the file moves state off the device, which is not priced; "" if it does not.
	Offload string `json:"offload"`

	Source *Source `json:"-"`
}

// Edit is an edit of the plan with what it changes in the user's file.
type Edit struct {
	planner.Edit
	Diff     string `json:"diff"`      // unified
	DiffNote string `json:"diff_note"` // why there is no diff; "" if there is one
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
}

// confidenceWords are the levels of confidence.
var confidenceWords = map[interop.Confidence]string{interop.Certain: "certain", interop.Likely: "likely",
	interop.Possible: "possible"}

// NewReport checks the plan of files that were read as a question.
func NewReport(s *Source, q *planner.Question) (*Report, error) {
	check, err := planner.NewCheckOf(q, expressedBy(s.Format, q))
	if err != nil {
		return nil, s.translated(err)
	}
	check.Diags = s.Translate(check.Diags, s.jobPath())
	r := &Report{Check: check, Format: s.Format.Name, Title: s.Format.Title, Sure: confidenceWords[s.Sure],
		Files: s.Files, Keys: s.Keys, Uses: s.Counts(), Notes: s.noteTexts(), Edits: []Edit{}, Env: []Env{}, Source: s}
	r.Offload = s.offload()
	if r.Offload != "" {
		r.Message += " " + r.Offload
	}
	from := check.From()
	for i, e := range check.Edits {
		r.Edits = append(r.Edits, Edit{Edit: e})
		if i < s.mostDiffs() {
			r.makeDiff(&r.Edits[i])
		}
	}
	if check.Best != nil && check.Best.Plan.Plan != from {
		r.Diff, r.DiffNote = s.diffOf(q, from, check.Best.Plan.Plan)
	}
	r.addEnv(q)
	return r, nil
}

// noteTexts returns the notes about the files: "run.sh:3:1: ...".
func (s *Source) noteTexts() []string {
	out := []string{}
	for _, n := range s.Notes {
		out = append(out, n.String())
	}
	return out
}

// offload says which keys of the files move state off the device; "" if none does.
func (s *Source) offload() string {
	var words []string
	for _, k := range s.Keys {
		if k.Offloads() {
			words = append(words, strings.TrimSpace(k.Name+" "+k.Value))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "The file offloads state (" + strings.Join(words, ", ") + "), which planc does not price yet: step time " +
		"and memory are without offload."
}

// EditDiff returns the diff of an edit, or why there is none. It makes the diff if the report of a large file left it
// out.
func (r *Report) EditDiff(i int) (text, note string) {
	e := &r.Edits[i]
	if e.Diff == "" && e.DiffNote == "" {
		r.makeDiff(e)
	}
	return e.Diff, e.DiffNote
}

// makeDiff adds the diff of an edit, or why there is none.
func (r *Report) makeDiff(e *Edit) {
	from := r.From()
	e.Diff, e.DiffNote = r.Source.diffOf(r.Question, from, e.Plan.Plan)
	e.IsRefused = r.Source.refusal(r.Question, from, e.Plan.Plan) != nil
	if e.Diff == "" && e.DiffNote == "" {
		e.DiffNote = fmt.Sprintf("format %s has no key that says %s", r.Format, e.Message)
	}
}

// mostDiffs returns the number of edits for which a diff is made. Each reads the file again.
func (s *Source) mostDiffs() int {
	const (
		large    = 1 << 18 // bytes of a file that is read in more than about a millisecond
		ofLarge  = 3
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

// addEnv adds the environment variables of the best plan, or of the checked one if no plan fits.
func (r *Report) addEnv(q *planner.Question) {
	plan := r.From()
	if r.Best != nil {
		plan = r.Best.Plan.Plan
	}
	for _, v := range r.Source.valuesOf(q, plan) {
		if v.Env && !v.IsAbsent {
			yours, isSet := r.Source.Import.Env[v.Key]
			r.Env = append(r.Env, Env{v.Key, v.Text, yours, isSet, v.Why})
		}
	}
}

// target returns what an export of a plan of a question is about.
func target(q *planner.Question, plan ir.Plan) *interop.Target {
	return &interop.Target{Plan: plan, Job: q.Job, Hardware: q.Hardware, PaddedVocab: q.PaddedVocab(plan)}
}

// valuesOf returns the keys of the format that say a plan.
func (s *Source) valuesOf(q *planner.Question, plan ir.Plan) []interop.Value {
	switch {
	case s.Import.Values != nil:
		return s.Import.Values(target(q, plan))
	case s.Format.Values == nil:
		return nil
	}
	return s.Format.Values(target(q, plan))
}

// diffOf returns the change of the user's file from one plan to another, as a unified diff, or why there is none.
func (s *Source) diffOf(q *planner.Question, from, to ir.Plan) (text, note string) {
	if s.Format.Values == nil || s.Doc == nil {
		return "", fmt.Sprintf("planc does not edit files of format %s", s.Format.Name)
	}
	if err := s.refusal(q, from, to); err != nil {
		return "", err.Error()
	}
	fresh, err := s.Format.Import(s.files, s.options)
	if err != nil || fresh.Doc == nil {
		return "", fmt.Sprintf("planc does not edit files of format %s", s.Format.Name)
	}
	for _, v := range s.edits(fresh.Doc, s.valuesOf(q, from), s.valuesOf(q, to)) {
		if v.Env && !s.setsEnv(v.Key) {
			continue // it is not part of the file
		}
		if err := set(fresh.Doc, v); err != nil {
			return "", err.Error()
		}
	}
	return s.unified(fresh.Doc), ""
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

// setsEnv reports whether the file sets an environment variable, or may set it because it is a script.
func (s *Source) setsEnv(name string) bool {
	_, isSet := s.Import.Env[name]
	return isSet || s.Format.Ext == ".sh"
}

// refusal returns why the format cannot express a plan; nil if it can, or if it cannot express the plan of the file
// either, for the same reason: then something else of the job is why.
func (s *Source) refusal(q *planner.Question, from, to ir.Plan) error {
	if s.Format.Write == nil {
		return nil
	}
	_, err := s.Format.Write(target(q, to))
	if err == nil {
		return nil
	}
	_, same := s.Format.Write(target(q, from))
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
		i := slices.IndexFunc(s.files, func(f interop.File) bool { return f.Name == part.Name })
		patch += unified(part.Name, s.files[max(0, i)].Data, part.Doc.Bytes())
	}
	return patch
}

// changed returns the values of a plan that another plan does not have, and removes the keys that it alone has.
func changed(from, to []interop.Value) (out []interop.Value) {
	find := func(all []interop.Value, v interop.Value) int {
		return slices.IndexFunc(all, func(w interop.Value) bool { return w.Key == v.Key && w.Env == v.Env })
	}
	for _, v := range to {
		i := find(from, v)
		if i < 0 || from[i].Text != v.Text || from[i].IsAbsent != v.IsAbsent {
			out = append(out, v)
		}
	}
	for _, v := range from {
		if !v.IsAbsent && find(to, v) < 0 {
			v.IsAbsent = true
			out = append(out, v)
		}
	}
	return out
}

// edits returns the values to set in a document for another plan: those that change, and keys of the file that say the
// same parts of the plan in another way and must go: --num-layers-per-virtual-pipeline-stage, if the number of virtual
// stages changes.
func (s *Source) edits(doc interop.Document, from, to []interop.Value) []interop.Value {
	out := changed(from, to)
	isChanged := map[string]bool{}
	for _, v := range out {
		for _, key := range v.Plan {
			isChanged[key] = true
		}
	}
	var removed []interop.Value
	for _, v := range to {
		says := slices.ContainsFunc(v.Plan, func(key string) bool { return isChanged[key] })
		if _, isSet := doc.Get(v.Key); isSet && v.IsAbsent && says && !v.Env {
			removed = append(removed, v)
		}
	}
	return append(removed, out...)
}

// set makes a value part of a document.
func set(doc interop.Document, v interop.Value) error {
	if v.IsAbsent {
		return doc.Remove(v.Key)
	}
	return doc.Set(v)
}

// unified returns a unified diff without its first line; "" if nothing differs.
func unified(name string, old, edited []byte) string {
	_, text, _ := bytes.Cut(diff.Diff(name, old, name, edited), []byte("\n"))
	return string(text)
}
