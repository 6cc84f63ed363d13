package checkscreen

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/migrate"
)

// planEnv is a plan of the screen with the environment variables that belong to it.
type planEnv struct {
	name string
	env  []migrate.Env
}

// planEnvs returns the plans of the screen: yours, that of the edit whose diff is shown, and the best one. Equal plans
// count once.
func planEnvs(r *migrate.Report, edits []numbered) []planEnv {
	out := []planEnv{{"yours", r.EnvYours}}
	best := r.From()
	if r.Best != nil {
		best = r.Best.Plan.Plan
	}
	e := firstDiff(edits)
	if e != nil && e.Diff != "" && e.Plan.Plan != best {
		out = append(out, planEnv{fmt.Sprintf("edit %d", e.number), r.EnvOf(e.Plan.Plan)})
	}
	if best == r.From() {
		return append(out[1:], planEnv{"yours", r.Env})
	}
	return append(out, planEnv{"the best plan", r.Env})
}

// envLines shows the environment variables that belong to plans, and to which of them if not to all. A variable that
// the file sets for its own plan alone needs no line.
func envLines(plans []planEnv) (out string) {
	var shown []migrate.Env
	label := "env"
	for _, plan := range plans {
		for _, v := range plan.env {
			isSame := func(w migrate.Env) bool { return w.Name == v.Name && w.Value == v.Value && w.Why == v.Why }
			names := namesOf(plans, isSame)
			isOfAll := len(names) == len(plans)
			isOfFile := v.IsSet && v.Yours == v.Value && slices.Equal(names, []string{"yours"}) && !isOfAll
			if isOfFile || slices.ContainsFunc(shown, isSame) {
				continue
			}
			shown = append(shown, v)
			if !isOfAll {
				out += layout.Prose(label, labelWidth, "of "+interop.Joined(names)+":")
				label = ""
			}
			out += layout.Prose(label, labelWidth, envText(&v))
			label = ""
		}
	}
	if out == "" {
		return ""
	}
	return "\n" + out
}

// namesOf returns the names of the plans that have a variable.
func namesOf(plans []planEnv, isSame func(migrate.Env) bool) (names []string) {
	for _, plan := range plans {
		if slices.ContainsFunc(plan.env, isSame) {
			names = append(names, plan.name)
		}
	}
	return names
}

// envText says a variable with its value, whether the file sets it, and why it is needed.
func envText(e *migrate.Env) string {
	state := "not set in the file"
	switch {
	case e.IsSet && e.Yours == e.Value:
		state = "set"
	case e.IsSet:
		state = "the file sets " + e.Yours
	case e.IsUnknown:
		state = "the log does not say whether it is set"
	}
	line := e.Name + "=" + e.Value + ": " + state
	if e.Why != "" {
		line += "; " + e.Why
	}
	return line
}
