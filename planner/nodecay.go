package planner

import (
	"path"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// exempt turns weight decay off for the parameters whose names match a pattern of train.optimizer.no_decay.
func exempt(m *ir.Model, patterns []string) {
	if len(patterns) == 0 {
		return
	}
	eachDecayed(m, func(name string, w *ir.Param) {
		if slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) }) {
			w.Decay = false
		}
	})
}

// matches reports whether a parameter's name matches a pattern, in which * stands for any characters.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// eachDecayed calls visit with each parameter that has weight decay and its name in checkpoints, with * for the number
// of a layer. A tied parameter has its owner's name.
func eachDecayed(m *ir.Model, visit func(name string, w *ir.Param)) {
	for _, s := range m.Segments {
		for _, w := range s.Forward.Weights() {
			if !w.Param.Decay {
				continue
			}
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

// checkNoDecay refuses patterns that match no parameter with weight decay.
func checkNoDecay(q *Question) error {
	var diags ir.Diags
	if q.Config == nil || len(q.Train.Optimizer.NoDecay) == 0 {
		return nil
	}
	var names []string
	eachDecayed(plainModel(q, q.Train.SeqLen), func(name string, _ *ir.Param) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	for _, p := range q.Train.Optimizer.NoDecay {
		if !slices.ContainsFunc(names, func(name string) bool { return matches(p, name) }) {
			diags.Addf(q.Pos("train.optimizer.no_decay"), strict.UnknownValue,
				"train.optimizer.no_decay: no parameter with weight decay matches %q; they are %s", p,
				strings.Join(names, ", "))
		}
	}
	return diags.Err()
}
