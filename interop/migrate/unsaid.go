package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
)

// recomputeKeys are the keys of a plan that say which blocks are recomputed.
var recomputeKeys = []string{"recompute", "recompute_layers", "recompute_every"}

// sayable decides what the keys of files can say about plans of a question.
type sayable struct {
	source   *Source
	question *planner.Question
}

// limits returns the plans that the files can express with edits, given the plan that they say now.
func (s *sayable) limits(yours ir.Plan) planner.FileLimits {
	byFormat, keeps := s.expressedBy(yours), s.unsaid(yours)
	keepsRecompute := slices.Contains(keeps, recomputeKeys[0])
	expresses := func(plan *ir.Plan) bool {
		written := atOwnStage(s.source.Import, *plan)
		return (byFormat == nil || byFormat(&written)) &&
			ownRefusals(s.source.Import, s.question, *plan) == nil && !s.leavesSP(yours, *plan) &&
			(keepsRecompute || !s.leavesRecompute(yours, *plan)) && s.hasTypes(yours, written)
	}
	return planner.FileLimits{Expresses: expresses, Keeps: keeps, ReplicasZero: s.source.ReplicasZero,
		Other: s.other(yours)}
}

// other returns the question of plans that shard state if a plan of the files does not, and the reverse; nil if the
// precision of the files is the same for both, or if the user gives it.
func (s *sayable) other(yours ir.Plan) *planner.Question {
	if s.source.Precision == nil {
		return nil
	}
	own, err := s.withPrecision(atOwnStage(s.source.Import, yours))
	if err != nil || own.Train.Precision != s.question.Train.Precision {
		return nil
	}
	other, err := s.withPrecision(otherSharding(yours))
	if err != nil || other.Train.Precision == own.Train.Precision {
		return nil
	}
	return other
}

// otherSharding returns a plan of data parallelism alone that shards state if a plan does not, and the reverse.
func otherSharding(yours ir.Plan) ir.Plan {
	other := yours
	other.TP, other.PP, other.Zero = 1, 1, 3
	if yours.Zero > 0 {
		other.Zero = 0
	}
	return other
}

// hasTypes reports whether a plan computes in the types in which the check prices it: those of the files' plan, or of
// the other sharding. A plan that gives up the FP32 copy of the weights has not: it trains otherwise.
func (s *sayable) hasTypes(yours, plan ir.Plan) bool {
	if s.source.Precision == nil {
		return true
	}
	priced := atOwnStage(s.source.Import, yours)
	theirs := s.source.Precision(&plan)
	if keepsWeights(s.source.Precision(&priced)) && !keepsWeights(theirs) {
		return false
	}
	if (plan.Zero > 0) != (priced.Zero > 0) {
		priced = otherSharding(priced)
	}
	isSame := func(a, b interop.Field) bool { return a.Path == b.Path && a.Value == b.Value }
	return slices.EqualFunc(theirs, s.source.Precision(&priced), isSame)
}

// keepsWeights reports whether types have the weights in FP32: as parameters, or as the optimizer's copy, which it has
// by default.
func keepsWeights(types []interop.Field) bool {
	has := func(path, value string) bool {
		return slices.ContainsFunc(types, func(f interop.Field) bool {
			return f.Path == "train.precision."+path && f.Value == value
		})
	}
	return has("params", "f32") || !has("master", "none")
}

// withPrecision returns the question with the precision that the files say for a plan.
func (s *sayable) withPrecision(plan ir.Plan) (*planner.Question, error) {
	over := []spec.Override{spec.SetFlag("train.precision=null")}
	for _, f := range s.source.Precision(&plan) {
		over = append(over, spec.Override{Key: f.Path, Value: f.Value, Shown: s.source.Main()})
	}
	return s.question.Override(over...)
}

// expressedBy returns the condition that the format can express a plan, except for what it cannot express of the files'
// own plan either, which an edit keeps; nil if it can express all.
func (s *sayable) expressedBy(yours ir.Plan) func(*ir.Plan) bool {
	f := s.source.Format
	if f.Refusals == nil {
		return expressedBy(f, s.question)
	}
	own := f.Refusals(target(s.question, atOwnStage(s.source.Import, yours)))
	return func(plan *ir.Plan) bool {
		return !slices.ContainsFunc(f.Refusals(target(s.question, *plan)), func(d ir.Diag) bool {
			return !slices.Contains(own, d)
		})
	}
}

// unsaid returns the keys of the plan for which the file has no key, because the training code decides them:
// recomputation, sequence parallelism, or those that the import says.
func (s *sayable) unsaid(yours ir.Plan) (keys []string) {
	if s.source.Format.Values == nil {
		return nil
	}
	switch {
	case s.canSayRecompute(yours):
	case yours.Recompute == "none":
		keys = recomputeKeys[:1]
	default:
		keys = recomputeKeys
	}
	if yours.TP > 1 && !s.saysSP(yours) {
		keys = append(slices.Clone(keys), "sp")
	}
	return slices.Concat(keys, s.source.InCode)
}

// assumedNote names the keys of the checked plan that planc has chosen and that only the training code can say; "" if
// there are none. Edits keep them, and a check of the edited file may choose others.
func assumedNote(s *sayable, check *planner.Check) string {
	if check.Yours == nil {
		return ""
	}
	inCode := append([]string{"sp"}, s.source.InCode...)
	plan, chosen := check.Yours.Plan.Plan, check.Yours.Chosen
	if slices.Contains(inCode, "pp") && plan.PP > 1 && s.question.Plan.StageLayers.Free() {
		inCode = append(inCode, "stage_layers")
		chosen = append(slices.Clone(chosen), "stage_layers")
	}
	values := s.source.valuesOf(s.question, plan)
	var words, sets []string
	for _, key := range chosen {
		isSaid := slices.ContainsFunc(values, func(v interop.Value) bool { return slices.Contains(v.Plan, key) })
		if !slices.Contains(inCode, key) || isSaid {
			continue
		}
		value := strings.ReplaceAll(fmt.Sprint(plan.JSON()[key]), " ", ",")
		words = append(words, key+" "+value)
		set := "plan." + key + "=" + value
		if strings.Contains(set, "[") { // shells match files with it
			set = "'" + set + "'"
		}
		sets = append(sets, "--set "+set)
	}
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("planc chose %s, which the model's code decides. Edits keep it: check the edited file with %s",
		strings.Join(words, ", "), strings.Join(sets, " "))
}

// canSayRecompute reports whether keys of the file say that blocks are recomputed, for some stage of ZeRO.
func (s *sayable) canSayRecompute(plan ir.Plan) bool {
	plan.Recompute, plan.RecomputeLayers, plan.RecomputeEvery = "full", plan.LargestChunk(), 1
	plan.RecomputeSplit = false
	for zero := range 4 {
		plan.Zero, plan.ZeroGroup = zero, 1
		if zero > 0 {
			plan.ZeroGroup = plan.Replicas()
		}
		if s.saysRecompute(plan) {
			return true
		}
	}
	return false
}

// saysRecompute reports whether keys of the file say that a plan recomputes.
func (s *sayable) saysRecompute(plan ir.Plan) bool {
	without := plan
	without.Recompute, without.RecomputeLayers, without.RecomputeEvery, without.RecomputeSplit = "none", 0, 0, false
	return plan.Recompute != "none" && s.tellsApart(plan, without)
}

// saysSP reports whether a key of the file says sequence parallelism.
func (s *sayable) saysSP(plan ir.Plan) bool {
	other := plan
	other.SP = !plan.SP
	return s.tellsApart(plan, other)
}

// tellsApart reports whether the keys of two plans differ.
func (s *sayable) tellsApart(a, b ir.Plan) bool {
	isSame := func(a, b interop.Value) bool {
		return a.Key == b.Key && a.Text == b.Text && a.IsAbsent == b.IsAbsent
	}
	return !slices.EqualFunc(s.source.valuesOf(s.question, a), s.source.valuesOf(s.question, b), isSame)
}

// unsaidNotes say what the training code must change for another plan; none if the file says all that changes.
func (s *sayable) unsaidNotes(from, to ir.Plan) (notes []string) {
	decided := func(what string) {
		notes = append(notes, fmt.Sprintf("format %s has no key that says %s: the model's code decides it",
			s.source.Format.Name, what))
	}
	if s.leavesSP(from, to) {
		decided(map[bool]string{true: "sp", false: "no sp"}[to.SP])
	}
	old, other := from.JSON(), to.JSON()
	for _, key := range s.source.InCode {
		if old[key] != other[key] {
			decided(fmt.Sprintf("%s %v", key, other[key]))
		}
	}
	if s.leavesRecompute(from, to) {
		notes = append(notes, s.recomputeNote(from, to))
	}
	return notes
}

// recomputeNote says that the training code must change recomputation, and why the file cannot say it if that is known.
func (s *sayable) recomputeNote(from, to ir.Plan) string {
	note := fmt.Sprintf("format %s has no key that says %s", s.source.Format.Name, to.RecomputeWords())
	if s.saysRecompute(from) {
		return note + " in this plan: the model's code must recompute its blocks"
	}
	for _, v := range s.source.valuesOf(s.question, to) {
		if v.Why != "" && slices.Contains(v.Plan, "recompute") {
			return note + ": " + v.Why
		}
	}
	return note
}

// leavesSP reports whether an edit leaves a change of sequence parallelism to the training code.
func (s *sayable) leavesSP(from, to ir.Plan) bool {
	return to.TP > 1 && from.SP != to.SP && s.source.Format.Values != nil && !s.saysSP(to) && !s.impliesSP(to)
}

// impliesSP reports whether a plan's sequence parallelism follows from its other keys, because the format has no plan
// with the other choice: torchtitan always applies it with tp.
func (s *sayable) impliesSP(plan ir.Plan) bool {
	refusals := s.source.Format.Refusals
	if refusals == nil {
		return false
	}
	other := plan
	other.SP = !plan.SP
	return len(refusals(target(s.question, other))) > len(refusals(target(s.question, plan)))
}

// leavesRecompute reports whether an edit leaves a change of recomputation to the training code.
func (s *sayable) leavesRecompute(from, to ir.Plan) bool {
	isSame := from.Recompute == to.Recompute && from.RecomputeLayers == to.RecomputeLayers &&
		from.RecomputeEvery == to.RecomputeEvery
	switch {
	case from.Recompute == "none" && to.Recompute == "none", s.source.Format.Values == nil, s.saysRecompute(to):
		return false
	case to.Recompute == "none":
		return !s.saysRecompute(from)
	}
	return !isSame || s.saysRecompute(from)
}
