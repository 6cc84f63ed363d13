package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
)

// readLike reads the user's files that an export edits.
func readLike(f *interop.Format, q *planner.Question, like []interop.File, o interop.Options) (*Source, error) {
	s, err := Read(like, f.Name, o)
	if err == nil && s.Devices == 0 {
		s, err = readOnNodes(like, f.Name, o.On(s.Nodes, q.Hardware.Devices(), q.Hardware.Node.Devices))
	}
	if err != nil {
		return nil, err
	}
	if s.Doc == nil {
		return nil, ir.Diags{{Pos: interop.File{Name: s.Main()}.Top(), Code: CannotExport,
			Msg: notEdited(f) + "; leave out --like"}}
	}
	if !q.Has("train.engine") {
		err = checkEngine(f, s, q.Train.Engine)
	}
	return s, err
}

// export returns the files with what a plan changes, or a patch of several files. refused says why the format cannot
// express the plan; nil if it can.
func (s *Source) export(q *planner.Question, plan ir.Plan, refused error) (*Exported, error) {
	if err := joined(refused, ownRefusals(s.Import, q, plan)); err != nil {
		return nil, err
	}
	out := &Exported{Notes: envNotes(s.Format, q, plan)}
	for _, v := range s.likeEdits(q, plan, out) {
		if v.Env && !s.setsEnv(v.Key) {
			continue // it is not part of the file: see envNotes
		}
		if err := set(s.Doc, v); err != nil {
			return nil, err
		}
	}
	if err := finish(s.Doc); err != nil {
		return nil, err
	}
	out.Notes = append(out.Notes, remarksOf(s.Doc)...)
	out.Notes = append(out.Notes, otherModel(s, q)...)
	out.Notes = append(out.Notes, otherNodes(s, q, plan)...)
	out.Notes = append(out.Notes, otherPrecision(s, q, plan)...)
	parts, _ := s.Doc.(interop.Parts) // one of them may be a file that the given one names
	if len(s.files) > 1 || len(parts) > 1 {
		out.Text = []byte(s.unified(s.Doc))
	} else {
		out.Text = s.Doc.Bytes()
	}
	return out, nil
}

// joined returns two errors as one. Diagnostics of both are listed.
func joined(a, b error) error {
	var first, second ir.Diags
	if errors.As(a, &first) && errors.As(b, &second) {
		return slices.Concat(first, second)
	}
	return cmp.Or(a, b)
}

// likeEdits returns the values that change from the plan of the files to another one, and those for which the files
// leave the choice to a planner. If the plan of the files is none of the job's model, all values are set.
func (s *Source) likeEdits(q *planner.Question, to ir.Plan, exported *Exported) []interop.Value {
	all := s.valuesOf(q, to)
	theirs, from, chosen, err := s.planOn(q)
	if err != nil {
		exported.Notes = append(exported.Notes, s.Main()+" has no plan for the job, so all keys of the plan are set: "+
			reason(err))
		exported.Notes = append(exported.Notes, (&sayable{s, q}).unsaidNotes(withoutUnsaid(to), to)...)
		return s.unlike(all)
	}
	exported.Notes = append(exported.Notes, (&sayable{s, q}).unsaidNotes(from, to)...)
	c := newChange(from, to)
	c.isOtherBatch = c.isOtherBatch || theirs.Train.GlobalBatch != q.Train.GlobalBatch
	out := c.edits(s.Doc.Get, s.valuesOf(theirs, from), all)
	for _, v := range s.unlike(all) {
		isChosen := slices.ContainsFunc(v.Plan, func(key string) bool { return slices.Contains(chosen, key) })
		if isChosen && !has(out, v.Key) {
			out = append(out, v)
		}
	}
	inOrder := func(v interop.Value) int {
		if v.IsAbsent {
			return -1 // keys that exclude others are removed before these are set
		}
		return slices.IndexFunc(all, func(w interop.Value) bool { return w.Key == v.Key })
	}
	slices.SortStableFunc(out, func(a, b interop.Value) int { return inOrder(a) - inOrder(b) })
	return out
}

// withoutUnsaid returns a plan without sp and recomputation. It stands for the plan of files that have none.
func withoutUnsaid(plan ir.Plan) ir.Plan {
	plan.SP = false
	plan.Recompute, plan.RecomputeLayers, plan.RecomputeEvery, plan.RecomputeSplit = "none", 0, 0, false
	return plan
}

// reason returns the first diagnostic of an error without its position, which is that of the job.
func reason(err error) string {
	var diags ir.Diags
	if errors.As(err, &diags) && len(diags) > 0 {
		return diags[0].Msg
	}
	return err.Error()
}

// unlike returns the values that the files do not have.
func (s *Source) unlike(all []interop.Value) []interop.Value {
	return slices.DeleteFunc(slices.Clone(all), func(v interop.Value) bool {
		text, isSet := s.Doc.Get(v.Key)
		return isLike(v, text, isSet)
	})
}

// planOn returns the plan of the files for the model of a question, on the devices that the files say, and the keys
// that the files leave open.
func (s *Source) planOn(q *planner.Question) (theirs *planner.Question, plan ir.Plan, chosen []string, err error) {
	over := []spec.Override{spec.SetFlag("plan=null"), spec.SetFlag("train.precision=null"),
		spec.SetFlag("cluster.node=" + q.Job.Cluster.Node)}
	over = append(over, s.cluster(s.read, over)...)
	for _, f := range s.Fields {
		switch section, _, _ := strings.Cut(strings.TrimPrefix(f.Path, "train."), "."); section {
		case "plan", "precision", "engine", "global_batch":
			over = append(over, spec.Override{Key: f.Path, Value: f.Value, Shown: s.Main()})
		}
	}
	theirs, err = q.Override(over...)
	if n := wholeChunk(theirs); err == nil && n > 0 {
		theirs, err = theirs.Override(spec.SetFlag("plan.recompute_layers=" + strconv.Itoa(n)))
	}
	if err != nil {
		return nil, plan, nil, err
	}
	plan, chosen, err = planner.Pinned(theirs)
	return theirs, plan, chosen, err
}

// keepsUnexpressed reports whether the format cannot express a plan for the same reason as the files' own plan.
func (s *Source) keepsUnexpressed(q *planner.Question, to ir.Plan) bool {
	_, from, _, err := s.planOn(q)
	return err == nil && s.refusal(q, from, to) == nil
}

// otherModel notes that the files train another model than the job, or on sequences of another length.
func otherModel(s *Source, q *planner.Question) (notes []string) {
	theirs, _ := spec.Load(s.jobPath(), s.read) // the job may lack fields
	if theirs == nil {
		return nil
	}
	note := func(format string, args ...any) {
		notes = append(notes, s.Main()+fmt.Sprintf(format, args...)+", and the file keeps its own")
	}
	if own := theirs.Config; own != nil && own.Params() != q.Config.Params() {
		note(" trains a model of %s parameters, and the job's %s has %s: the plan is that of the job's model",
			quantity.Params(own.Params()), q.Config.Name, quantity.Params(q.Config.Params()))
	}
	if n := theirs.Train.SeqLen; s.Has("train.seq_len") && n > 0 && n != q.Train.SeqLen {
		note(" has sequences of %d tokens, and the job of %d: the plan is that of the job", n, q.Train.SeqLen)
	}
	return notes
}

// otherPrecision notes that the files compute in another type than the job.
func otherPrecision(s *Source, q *planner.Question, plan ir.Plan) []string {
	theirs, own := "", q.Train.Precision.Compute
	for _, path := range []string{"train.precision", "train.precision.compute"} {
		if f, ok := s.Import.Field(path); ok {
			theirs = f.Value
		}
	}
	if theirs == "" || theirs == own {
		return nil
	}
	isWritten := slices.ContainsFunc(s.valuesOf(q, plan), func(v interop.Value) bool {
		return slices.Contains(v.Plan, "precision")
	})
	end := "the plan is that of the job, and the file keeps its own"
	if isWritten {
		end = "the file changes to " + own + "; --set train.precision=" + theirs + " keeps it"
	}
	return []string{fmt.Sprintf("%s trains in %s, and the job in %s: %s", s.Main(), theirs, own, end)}
}

// Precision returns the precision that the user's files say, as arguments of --set, for jobs that say none. If it
// depends on the plan, that is the type in which the files compute.
func Precision(f *interop.Format, like []interop.File, o interop.Options) (sets []string, err error) {
	s, err := Read(like, f.Name, o)
	if err != nil {
		return nil, err
	}
	for _, field := range s.Fields {
		_, isPart := strings.CutPrefix(field.Path, "train.precision.")
		isCompute := field.Path == "train.precision" || field.Path == "train.precision.compute"
		if isCompute || isPart && s.Import.Precision == nil {
			sets = append(sets, field.Path+"="+field.Value)
		}
	}
	return sets, nil
}

// read returns the job that the files describe, one of the files, or a file that they name.
func (s *Source) read(path string) ([]byte, error) {
	i := slices.IndexFunc(s.files, func(f interop.File) bool { return f.Name == path })
	switch {
	case path == s.jobPath():
		return s.JobText(), nil
	case i >= 0:
		return s.files[i].Data, nil
	case s.options.Read != nil:
		return s.options.Read(path)
	}
	return nil, fs.ErrNotExist
}
