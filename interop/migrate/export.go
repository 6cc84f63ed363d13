package migrate

import (
	"errors"
	"fmt"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
)

// Export returns the file of a format for a plan of a question: a whole file, or the user's own file with what the plan
// changes. Several files of the user's that belong together give a patch of them. A plan that the format or its engine
// cannot express is refused with the best plan that both can.
func Export(f *interop.Format, q *planner.Question, plan ir.Plan, like []interop.File,
	o interop.Options) ([]byte, error) {
	if f.Write == nil {
		return nil, ir.Diags{{Code: UnknownFormat,
			Msg: fmt.Sprintf("planc reads files of format %s and does not write them", f.Name)}}
	}
	if diags := refusals(f, q, plan); len(diags) > 0 {
		return nil, withBest(f, q, diags)
	}
	text, err := f.Write(target(q, plan))
	if err != nil {
		var diags ir.Diags
		if errors.As(err, &diags) {
			return nil, withBest(f, q, diags)
		}
		return nil, err
	}
	if len(like) == 0 {
		return text, nil
	}
	return edit(f, q, plan, like, o)
}

// Best returns the plan to export: the one that a search recommends, or else the best with the job's pins that the
// format can express. If there is none, it returns the recommended one, which Export refuses.
func Best(f *interop.Format, q *planner.Question, plan ir.Plan) (ir.Plan, error) {
	expresses := expressedBy(f, q)
	if expresses == nil || expresses(&plan) {
		return plan, nil
	}
	best, err := planner.BestOf(q, expresses)
	if err != nil || best.Plan == nil {
		return plan, err
	}
	return best.Plan.Plan, nil
}

// refusals returns the rules of the format's engine that a plan breaks.
func refusals(f *interop.Format, q *planner.Question, plan ir.Plan) (diags ir.Diags) {
	for _, r := range q.Refusals(f.Engine, plan) {
		diags = append(diags, ir.Diag{Pos: q.Pos("plan." + r.Key), Code: CannotExport, Msg: "plan." + r.Message})
	}
	return diags
}

// withBest appends to diags, which refuse a plan, the best plan that the engine can run and the format can express.
func withBest(f *interop.Format, q *planner.Question, diags ir.Diags) error {
	if f.Engine == "" || len(diags) == 0 {
		return diags.Err()
	}
	other, err := planner.ForEngine(q, f.Engine, spec.SetFlag("plan=null"))
	if err != nil {
		return diags.Err()
	}
	best, err := planner.BestOf(other, expressedBy(f, other))
	if err != nil || best.Plan == nil {
		return diags.Err()
	}
	last := &diags[len(diags)-1]
	last.Msg += fmt.Sprintf("; the best plan that engine %s can run and format %s can express is %v: %v a step (--set "+
		"train.engine=%s --set plan=null)", f.Engine, f.Name, best.Plan.Plan, best.Predict.StepS, f.Engine)
	return diags.Err()
}

// Notes returns what a plan needs in addition to the format's file: environment variables, unless the file is a
// script, which sets them.
func Notes(f *interop.Format, q *planner.Question, plan ir.Plan) (notes []string) {
	if f.Values == nil || f.Ext == ".sh" {
		return nil
	}
	for _, v := range f.Values(target(q, plan)) {
		if v.Env && !v.IsAbsent {
			notes = append(notes, fmt.Sprintf("set %s=%s in the environment (%s)", v.Key, v.Text, v.Why))
		}
	}
	return notes
}

// CheckLike refuses to edit a user's file of another engine than the format's default, for jobs that name no engine:
// the edit would change the engine of the file.
func CheckLike(f *interop.Format, like []interop.File, o interop.Options) error {
	s, err := Read(like, f.Name, o)
	if err != nil {
		return err
	}
	return checkEngine(f, s, f.Engine)
}

// checkEngine returns an error unless the file's engine is the format's default or the given one.
func checkEngine(f *interop.Format, s *Source, engine string) error {
	if s.Engine == f.Engine || s.Engine == engine {
		return nil
	}
	return ir.Diags{{Pos: ir.Pos{File: s.Main()}, Code: CannotExport,
		Msg: fmt.Sprintf("the file trains with engine %s, and the job names no engine; type --engine %s to keep it, "+
			"or --engine %s to change the file to that engine", s.Engine, s.Engine, f.Engine)}}
}

// edit returns the user's file with what a plan changes, or a patch of several files.
func edit(f *interop.Format, q *planner.Question, plan ir.Plan, like []interop.File, o interop.Options) ([]byte,
	error) {
	s, err := Read(like, f.Name, o)
	if err != nil {
		return nil, err
	}
	if s.Doc == nil {
		return nil, ir.Diags{{Pos: ir.Pos{File: s.Main()}, Code: CannotExport,
			Msg: fmt.Sprintf("planc does not edit files of format %s; leave out --like", f.Name)}}
	}
	if !q.Has("train.engine") {
		if err := checkEngine(f, s, q.Train.Engine); err != nil {
			return nil, err
		}
	}
	for _, v := range s.valuesOf(q, plan) {
		if v.Env && !s.setsEnv(v.Key) {
			continue // it is not part of the file: see Notes
		}
		text, isSet := s.Doc.Get(v.Key)
		if v.IsAbsent && !isSet || !v.IsAbsent && isSet && text == v.Text {
			continue
		}
		if err := set(s.Doc, v); err != nil {
			return nil, err
		}
	}
	if len(like) > 1 {
		return []byte(s.unified(s.Doc)), nil
	}
	return s.Doc.Bytes(), nil
}
