package torchtitan

import (
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// unable lists what torchtitan 0.2 cannot run for some of its models. Its parser accepts such a file, and the start
// fails. Source: torchtitan 0.2.2, train.py: pipelining_fn, which models/*/__init__.py leave out;
// models/gpt_oss/model/args.py: update_from_config. Version 0.3 has pipelines for both.
var unable = []struct {
	model, key, plan, what string
	degree                 func(p *ir.Plan) int
}{
	{"qwen3", ppKey, "pp", "pipelines", func(p *ir.Plan) int { return p.PP }},
	{"gpt_oss", ppKey, "pp", "pipelines", func(p *ir.Plan) int { return p.PP }},
	{"gpt_oss", cpKey, "cp", "context parallelism", func(p *ir.Plan) int { return p.CP }},
}

// refuseUnable reports degrees that torchtitan 0.2 does not have for the file's model.
func (r *reader) refuseUnable() {
	for _, u := range unable {
		if n := r.degree(u.key); n > 1 && r.model == u.model {
			r.Wrong(u.key, strict.OutOfRange, "", "%s is %d, and torchtitan 0.2 has no %s for %s: set it to 1", u.key,
				n, u.what, u.model)
		}
	}
}

// refusalsOf returns why torchtitan 0.2 cannot run a plan of one of its models.
func refusalsOf(model string, p *ir.Plan) (diags ir.Diags) {
	for _, u := range unable {
		if n := u.degree(p); n > 1 && u.model == model {
			diags.Addf(ir.Pos{File: "plan"}, CannotExpress, "%s %d: torchtitan 0.2 has no %s for %s; type: --set "+
				"plan.%[1]s=1", u.plan, n, u.what, model)
		}
	}
	return diags
}

// tomlRefusals returns why torchtitan 0.2 cannot run a plan.
func tomlRefusals(t *interop.Target) ir.Diags {
	return append(refusals(t), refusalsOf(families[t.Job.Config.Family], &t.Plan)...)
}
