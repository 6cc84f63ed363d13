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
// changes. A plan that the format's engine cannot run is refused with the best plan that it can.
func Export(f *interop.Format, q *planner.Question, plan ir.Plan, like *interop.File,
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
	if like == nil {
		return text, nil
	}
	return edit(f, q, plan, *like, o)
}

// refusals returns the rules of the format's engine that a plan breaks.
func refusals(f *interop.Format, q *planner.Question, plan ir.Plan) (diags ir.Diags) {
	for _, r := range q.Refusals(f.Engine, plan) {
		diags = append(diags, ir.Diag{Pos: q.Pos("plan." + r.Key), Code: CannotExport, Msg: "plan." + r.Message})
	}
	return diags
}

// withBest adds the best plan that the format's engine can run to why it cannot run another one.
func withBest(f *interop.Format, q *planner.Question, diags ir.Diags) error {
	if f.Engine == "" || len(diags) == 0 {
		return diags.Err()
	}
	best, err := q.UnderEngine(f.Engine, spec.SetFlag("plan=null"))
	if err != nil || best.Plan == nil {
		return diags.Err()
	}
	last := &diags[len(diags)-1]
	last.Msg += fmt.Sprintf("; the best plan that engine %s can run is %v: %v a step (--set train.engine=%s --set "+
		"plan=null)", f.Engine, best.Plan.Plan, best.Predict.StepS, f.Engine)
	return diags.Err()
}

// edit returns the user's file with what a plan changes.
func edit(f *interop.Format, q *planner.Question, plan ir.Plan, like interop.File, o interop.Options) ([]byte, error) {
	s, err := Read([]interop.File{like}, f.Name, o)
	if err != nil {
		return nil, err
	}
	if s.Doc == nil {
		return nil, ir.Diags{{Pos: ir.Pos{File: like.Name}, Code: CannotExport,
			Msg: fmt.Sprintf("planc does not edit files of format %s; leave out --like", f.Name)}}
	}
	for _, v := range f.Values(target(q, plan)) {
		text, isSet := s.Doc.Get(v.Key)
		if v.IsAbsent && !isSet || !v.IsAbsent && isSet && text == v.Text {
			continue
		}
		if err := set(s.Doc, v); err != nil {
			return nil, err
		}
	}
	return s.Doc.Bytes(), nil
}
