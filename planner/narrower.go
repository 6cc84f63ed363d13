package planner

import (
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
)

// presetsByWidth are the presets that a narrower precision is chosen from, the widest first.
var presetsByWidth = []string{"f64", "f32", "bf16"}

// narrower returns the job in each narrower precision that its devices compute in, the widest first.
func (q *Question) narrower() (out []search.Trial) {
	now := slices.Index(presetsByWidth, q.Train.Precision.Compute)
	if now < 0 {
		return nil
	}
	for _, name := range presetsByWidth[now+1:] {
		if _, can := q.Hardware.GPU.Peak(name); can {
			out = append(out, q.withPrecision(spec.Presets[name], map[string]any{"train.precision": name}))
		}
	}
	return out
}

// withPrecision returns the job in another precision, which is reached by setting the fields of set.
func (q *Question) withPrecision(p spec.Precision, set map[string]any) search.Trial {
	job := *q.Job
	job.Train.Precision = p
	other := *q
	other.Job = &job
	return search.Trial{Name: "precision", Set: set, Problem: *other.Problem()}
}

// narrowerState returns the trials of narrower, and then trials that also keep gradients or moments in bf16. Those
// start from the narrowest precision of narrower, or from the job's own if there is none.
func (q *Question) narrowerState() []search.Trial {
	out := q.narrower()
	base, set := q.Train.Precision, map[string]any{}
	if n := len(out); n > 0 {
		set = out[n-1].Set
		base = spec.Presets[set["train.precision"].(string)]
	} else if !q.Has("train.precision") { // one field of precision alone would not say what the others are
		set["train.precision"] = base.Compute
	}
	for _, narrow := range narrowings {
		p, fields := base, maps.Clone(set)
		if narrow(&p, fields) && p.Refused() == "" {
			out = append(out, q.withPrecision(p, fields))
		}
	}
	return out
}

// narrowings keep state in bf16 that bf16 training keeps in f32, the most usual first: gradients, as Megatron-LM does
// without --accumulate-allreduce-grads-in-fp32; the optimizer's moments; both. Each reports whether it changes
// anything.
var narrowings = []func(p *spec.Precision, set map[string]any) bool{
	narrowGrads,
	narrowMoments,
	func(p *spec.Precision, set map[string]any) bool { return narrowGrads(p, set) && narrowMoments(p, set) },
}

// narrowGrads keeps gradients in bf16 and reduces them in bf16, because they have been rounded to it already.
func narrowGrads(p *spec.Precision, set map[string]any) bool {
	if p.Params != "bf16" || p.Grads == "bf16" {
		return false
	}
	p.Grads, p.Reduce = "bf16", "bf16"
	set["train.precision.grads"], set["train.precision.reduce"] = "bf16", "bf16"
	return true
}

// narrowMoments keeps the optimizer's moments in bf16.
func narrowMoments(p *spec.Precision, set map[string]any) bool {
	if p.Params != "bf16" || p.Moments == "bf16" {
		return false
	}
	p.Moments = "bf16"
	set["train.precision.moments"] = "bf16"
	return true
}

// precisionWords returns the values that a change of the precision sets: "bf16", "grads bf16", "grads and moments
// bf16". It leaves out values that follow from these.
func precisionWords(set map[string]any) string {
	var state []string
	for _, key := range []string{"grads", "moments"} {
		if set["train.precision."+key] != nil {
			state = append(state, key)
		}
	}
	if len(state) > 0 {
		return strings.Join(state, " and ") + " bf16"
	}
	name, _ := set["train.precision"].(string)
	return name
}
