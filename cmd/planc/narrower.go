package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
)

// presetsByWidth are the presets that narrower numbers are chosen from, the widest first.
var presetsByWidth = []string{"f64", "f32", "bf16"}

// narrower asks for the job in narrower numbers that its devices compute in, the widest first.
func (j *loaded) narrower() (out []search.Trial) {
	now := slices.Index(presetsByWidth, j.Train.Precision.Compute)
	if now < 0 {
		return nil
	}
	for _, name := range presetsByWidth[now+1:] {
		if _, can := j.cluster.GPU.Peak(name); can {
			out = append(out, j.withPrecision(spec.Presets[name], map[string]any{"train.precision": name}))
		}
	}
	return out
}

// withPrecision asks for the job in another precision, which the fields of set lead to.
func (j *loaded) withPrecision(p spec.Precision, set map[string]any) search.Trial {
	job := *j.Job
	job.Train.Precision = p
	q := *j
	q.Job = &job
	return search.Trial{Name: "precision", Set: set, Problem: *q.problem()}
}

// narrowerState is narrower, and after it the narrowest of those, or the job's own precision if there are none, with
// state that is kept in narrower numbers than the preset keeps it in.
func (j *loaded) narrowerState() []search.Trial {
	out := j.narrower()
	base, set := j.Train.Precision, map[string]any{}
	if n := len(out); n > 0 {
		set = out[n-1].Set
		base = spec.Presets[set["train.precision"].(string)]
	} else if !j.Has("train.precision") { // a field of it alone would not say what the others are
		set["train.precision"] = base.Compute
	}
	for _, s := range narrowings {
		p, own := base, maps.Clone(set)
		if s(&p, own) && p.Refused() == "" {
			out = append(out, j.withPrecision(p, own))
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

// narrowGrads keeps gradients in bf16, and reduces them in it: what was rounded stays rounded.
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

// precisionWords are the values that a change of the precision sets: "bf16", "grads bf16", "grads and moments bf16".
// What only follows from these is left out.
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
