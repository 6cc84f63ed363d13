package migrate

import (
	"errors"
	"fmt"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
)

// Exported is a plan as another trainer's file.
type Exported struct {
	Text []byte
	// Notes are what the plan needs in addition to the file, and what of the user's file is not the job's.
	Notes []string
}

// Export returns the file of a format for a plan of a question: a whole file, or the user's own file with what the plan
// changes. Several files of the user's that belong together give a patch of them, also if only one is given, which
// names the other. A plan that the format or its engine cannot express is refused with the best plan that both can.
func Export(f *interop.Format, q *planner.Question, plan ir.Plan, like []interop.File,
	o interop.Options) (*Exported, error) {
	if f.Write == nil {
		return nil, ir.Diags{{Code: UnknownFormat,
			Msg: fmt.Sprintf("planc reads files of format %s and does not write them", f.Name)}}
	}
	w, err := newWriter(f, q, like, o)
	if err != nil {
		return nil, err
	}
	if diags := refusals(f, q, plan); len(diags) > 0 {
		return nil, w.withBest(plan, diags)
	}
	out, err := w.write(plan)
	var diags ir.Diags
	if errors.As(err, &diags) {
		return nil, w.withBest(plan, diags)
	}
	return out, err
}

// Best returns the plan to export: the one that a search recommends, or else the best with the job's pins that the
// format can express, and the user's own files if there are some. If there is none, it returns the recommended one,
// which Export refuses.
func Best(f *interop.Format, q *planner.Question, plan ir.Plan, like []interop.File, o interop.Options) (ir.Plan,
	error) {
	w, err := newWriter(f, q, like, o)
	if err != nil {
		return plan, err
	}
	expresses := w.expresses(q)
	if expresses == nil || expresses(&plan) {
		return plan, nil
	}
	best, err := planner.BestOf(q, expresses)
	if err != nil || best.Plan == nil {
		return plan, err
	}
	return best.Plan.Plan, nil
}

// RefusedPins returns the error of a search that refuses the job's pins. If planc's own engine runs them, it names the
// best plan that the job's engine can run and the written file can express.
func RefusedPins(f *interop.Format, q *planner.Question, like []interop.File, o interop.Options,
	diags ir.Diags) error {
	own, err := q.UnderEngine("planc")
	if err != nil || own.Plan == nil {
		return diags
	}
	w, err := newWriter(f, q, like, o)
	if err != nil {
		return diags
	}
	return w.withBest(own.Plan.Plan, diags)
}

// writer writes plans of a question in a format.
type writer struct {
	format   *interop.Format
	question *planner.Question
	like     *Source // the user's files, which are edited; nil for a new file
}

func newWriter(f *interop.Format, q *planner.Question, like []interop.File, o interop.Options) (w *writer, err error) {
	w = &writer{format: f, question: q}
	if len(like) > 0 {
		w.like, err = readLike(f, q, like, o)
	}
	return w, err
}

// write returns a new file for a plan, or the user's files with what the plan changes. Errors about the plan are
// ir.Diags.
func (w *writer) write(plan ir.Plan) (*Exported, error) {
	q := w.question
	text, err := w.format.Write(target(q, plan))
	switch {
	case w.like != nil:
		if err != nil && w.like.keepsUnexpressed(q, plan) {
			err = nil
		}
		return w.like.export(q, plan, err)
	case err != nil:
		return nil, err
	}
	s := &sayable{&Source{Format: w.format, Import: &interop.Import{}}, q}
	return &Exported{text, append(envNotes(w.format, q, plan), s.unsaidNotes(withoutUnsaid(plan), plan)...)}, nil
}

// expresses returns the condition that the written file can express a plan of a question; nil if it can express all.
// An edit keeps what the format cannot express of the files' own plan either.
func (w *writer) expresses(q *planner.Question) func(*ir.Plan) bool {
	byFormat := expressedBy(w.format, q)
	if w.like == nil {
		return byFormat
	}
	_, from, _, err := w.like.planOn(q)
	if err == nil {
		byFormat = (&sayable{w.like, q}).expressedBy(from)
	}
	return func(plan *ir.Plan) bool {
		written := atOwnStage(w.like.Import, *plan)
		return (byFormat == nil || byFormat(&written)) && ownRefusals(w.like.Import, q, *plan) == nil
	}
}

// name returns what expresses a plan: the format, or the user's main file.
func (w *writer) name() string {
	if w.like == nil {
		return "format " + w.format.Name
	}
	return w.like.Main()
}

// refusals returns the rules that a plan breaks of the engine that would run it.
func refusals(f *interop.Format, q *planner.Question, plan ir.Plan) (diags ir.Diags) {
	for _, r := range q.Refusals(f.EngineOf(q.Train.Engine), plan) {
		diags = append(diags, ir.Diag{Pos: q.Pos("plan." + r.Key), Code: CannotExport, Msg: "plan." + r.Message})
	}
	return diags
}

// withBest appends to diags, which refuse a plan, the best plan that the engine can run and the written file can
// express.
func (w *writer) withBest(plan ir.Plan, diags ir.Diags) error {
	engine := w.format.EngineOf(w.question.Train.Engine)
	if engine == "" || len(diags) == 0 {
		return diags.Err()
	}
	other, err := planner.ForEngine(w.question, engine, spec.SetFlag("plan=null"))
	if err != nil {
		return diags.Err()
	}
	best, err := planner.BestOf(other, w.expresses(other))
	last := &diags[len(diags)-1]
	able := fmt.Sprintf("that engine %s can run and %s can express", engine, w.name())
	switch {
	case err != nil:
		return diags.Err()
	case best.Plan == nil:
		if w.like != nil && ownRefusals(w.like.Import, w.question, plan) != nil {
			last.Msg += "; no plan " + able + " fits"
		}
		return diags.Err()
	}
	_, err = (&writer{w.format, other, w.like}).write(best.Plan.Plan)
	if err == nil { // it is an error for a model that the format does not have
		last.Msg += fmt.Sprintf("; the best plan %s is %v: %v a step (--set train.engine=%s --set plan=null)", able,
			best.Plan.Plan, best.Predict.StepS, engine)
	}
	return diags.Err()
}

// envNotes returns the environment variables that a plan needs in addition to the format's file, unless the file is a
// script, which sets them.
func envNotes(f *interop.Format, q *planner.Question, plan ir.Plan) (notes []string) {
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
	return ir.Diags{{Pos: interop.File{Name: s.Main()}.Top(), Code: CannotExport,
		Msg: fmt.Sprintf("the file trains with engine %s, and the job names no engine; type --engine %s to keep it, "+
			"or --engine %s to change the file to that engine", s.Engine, s.Engine, f.Engine)}}
}
