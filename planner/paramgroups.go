package planner

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// groupParams applies the patterns of an optimizer to the parameters of a model: no_decay turns weight decay off, and
// lr_multipliers scale the learning rate.
func groupParams(m *ir.Model, o *spec.Optimizer) {
	if len(o.NoDecay) == 0 && len(o.LRMultipliers) == 0 {
		return
	}
	eachParam(m, func(name string, w *ir.Param) {
		if slices.ContainsFunc(o.NoDecay, func(p string) bool { return matches(p, name) }) {
			w.Decay = false
		}
		for p, factor := range o.LRMultipliers {
			if factor != 1 && matches(p, name) && !w.Balance {
				w.LRMultiplier = factor
			}
		}
	})
}

// matches reports whether a parameter's name matches a pattern, in which * stands for any characters.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// eachParam calls visit with each parameter and its name in checkpoints, with * for the number of a layer. A tied
// parameter has its owner's name.
func eachParam(m *ir.Model, visit func(name string, w *ir.Param)) {
	for _, s := range m.Segments {
		for _, w := range s.Forward.Weights() {
			name := s.Name + "." + w.Name
			switch {
			case w.Param.Tied != "":
				name = w.Param.Tied
			case s.Numbered():
				name = s.Name + ".*." + w.Name
			}
			visit(name, w.Param)
		}
	}
}

// checkParamGroups refuses patterns that match no parameter that they could change, and two multipliers of one
// parameter.
func checkParamGroups(q *Question) error {
	o := &q.Train.Optimizer
	if q.Config == nil || len(o.NoDecay) == 0 && len(o.LRMultipliers) == 0 {
		return nil
	}
	var decayed, trained []string
	eachParam(plainModel(q, q.Train.SeqLen), func(name string, w *ir.Param) {
		if w.Decay && !slices.Contains(decayed, name) {
			decayed = append(decayed, name)
		}
		if !w.Balance && !slices.Contains(trained, name) {
			trained = append(trained, name)
		}
	})
	var diags ir.Diags
	for _, p := range o.NoDecay {
		if !slices.ContainsFunc(decayed, func(name string) bool { return matches(p, name) }) {
			diags.Addf(q.Pos("train.optimizer.no_decay"), strict.UnknownValue,
				"train.optimizer.no_decay: no parameter with weight decay matches %q; they are %s", p,
				strings.Join(decayed, ", "))
		}
	}
	by := map[string]string{} // the pattern that matches a parameter
	for _, p := range slices.Sorted(maps.Keys(o.LRMultipliers)) {
		any, pos := false, q.Pos("train.optimizer.lr_multipliers")
		for _, name := range trained {
			if !matches(p, name) {
				continue
			}
			any = true
			if other := by[name]; other != "" {
				diags.Addf(pos, strict.UnknownValue, "train.optimizer.lr_multipliers: %q and %q both match %s; "+
					"change them so that at most one matches a parameter", other, p, name)
				break
			}
			by[name] = p
		}
		if !any {
			diags.Addf(pos, strict.UnknownValue, "train.optimizer.lr_multipliers: no parameter matches %q; they are %s",
				p, strings.Join(trained, ", "))
		}
	}
	return diags.Err()
}
