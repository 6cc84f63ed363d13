package migrate

import (
	"fmt"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/planner"
)

// A file may have the keys of a plan where they cannot be changed: in a file that it sources, or in a YAML anchor.

// writtenNote returns what follows the reason why the best plan of a report has no diff: the best plan that has one,
// or that there is none; "" if it has a diff, or if files of the format are not edited.
func writtenNote(s *sayable, r *Report) string {
	switch main := s.source.Main(); {
	case r.DiffNote == "" || s.source.Doc == nil || s.source.Format.Values == nil:
		return ""
	case r.IsOutsideFile():
		return "; no plan that " + main + " can express fits"
	}
	from := r.From()
	can := &writable{source: s.source, question: s.question, from: from, tried: map[string]bool{}}
	check, err := planner.NewCheckOf(s.question, func(yours ir.Plan) planner.FileLimits {
		limits := s.limits(yours)
		expresses := limits.Expresses
		limits.Expresses = func(plan *ir.Plan) bool { return expresses(plan) && can.write(*plan) }
		return limits
	})
	switch {
	case err != nil:
		return ""
	case check.Best == nil || check.IsOutsideFile():
		return "; no plan that can be written into the file fits"
	case check.Best.Plan.Plan == from:
		return "; no plan that can be written into the file is faster than yours"
	}
	best := check.Best
	return fmt.Sprintf("; the best plan that can be written into the file is %v: %v a step", best.Plan.Plan,
		best.Predict.StepS)
}

// writable decides which plans can be written into the user's files.
type writable struct {
	source   *Source
	question *planner.Question
	from     ir.Plan         // that the files say
	tried    map[string]bool // whether a key of the files can have a value, by both
}

// write reports whether a plan can be written. Each value is tried once.
func (w *writable) write(to ir.Plan) bool {
	s := w.source
	values := newChange(w.from, to).edits(s.Doc.Get, s.valuesOf(w.question, w.from), s.valuesOf(w.question, to))
	for _, v := range values {
		if v.Env && !s.setsEnv(v.Key) {
			continue // it is not part of the file
		}
		id := fmt.Sprint(v.Key, " ", v.IsAbsent, " ", v.Text)
		can, ok := w.tried[id]
		if !ok {
			can = w.try(v)
			w.tried[id] = can
		}
		if !can {
			return false
		}
	}
	return true
}

// try reports whether a value can be written, in a copy of the files.
func (w *writable) try(v interop.Value) bool {
	fresh, err := w.source.Format.Import(w.source.files, w.source.options)
	return err == nil && fresh.Doc != nil && set(fresh.Doc, v) == nil
}
