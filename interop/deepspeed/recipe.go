package deepspeed

import (
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// kinds maps DeepSpeed's optimizers to planc's. Adam applies weight decay as AdamW does, unless adam_w_mode is false.
var kinds = map[string]string{"adam": "adamw", "adamw": "adamw", "sgd": "sgd", "fusedadam": "adamw",
	"deepspeedcpuadam": "adamw"}

// optimizer takes the optimizer and its parameters.
func (r *reader) optimizer() {
	if clip, ok := r.Float("gradient_clipping"); ok {
		r.Take("gradient_clipping", interop.Field{Path: "train.optimizer.clip_norm", Value: number(clip)})
	}
	kind := r.Text("optimizer.type")
	mapped := kinds[strings.ToLower(kind)]
	switch {
	case kind == "" && r.Has("optimizer"):
		r.Absent("train.optimizer.kind", "the script decides: optimizer has no type")
		return
	case kind == "":
		return
	case mapped == "":
		r.Account("optimizer.type", interop.Unsupported, interop.OtherOptimizerNote(kind))
		return
	}
	const adamW = "optimizer.params.adam_w_mode"
	if on, ok := r.Bool(adamW); ok {
		r.Take(adamW)
		if !on && mapped == "adamw" {
			mapped = "adam"
		}
	}
	r.Take("optimizer.type", interop.Field{Path: "train.optimizer.kind", Value: mapped})
	for _, p := range []struct{ key, field string }{{"lr", "lr"}, {"eps", "eps"}, {"weight_decay", "weight_decay"},
		{"momentum", "momentum"}} {
		path := "optimizer.params." + p.key
		if value, ok := r.Float(path); ok {
			r.Take(path, interop.Field{Path: "train.optimizer." + p.field, Value: number(value)})
		}
	}
	if mapped != "sgd" {
		r.betas()
	}
}

// betas takes the decay rates of Adam's two moments.
func (r *reader) betas() {
	const path = "optimizer.params.betas"
	n := r.Node(path)
	if n == nil {
		return
	}
	isRate := func(item *tree.Node) bool {
		rate, ok := item.Float()
		return ok && rate >= 0 && rate < 1
	}
	const moments = 2
	if len(n.Items) != moments || !isRate(n.Items[0]) || !isRate(n.Items[1]) {
		r.Wrong(path, strict.WrongType, "", "%s is %s; Adam needs two numbers, each at least 0 and below 1: write "+
			"[0.9, 0.999]", path, n.Flow())
		return
	}
	r.Take(path, interop.Field{Path: "train.optimizer.betas", Value: n.Flow()})
}

// schedules maps DeepSpeed's schedulers to planc's schedules.
var schedules = map[string]string{"WarmupLR": "constant", "WarmupDecayLR": "linear", "WarmupCosineLR": "cosine"}

// scheduler takes the schedule of the learning rate, which does not decide the plan.
func (r *reader) scheduler() {
	kind := r.Text("scheduler.type")
	if schedules[kind] == "" {
		return
	}
	r.Take("scheduler.type", interop.Field{Path: "train.schedule.kind", Value: schedules[kind]})
	for _, p := range []struct{ key, field string }{{"warmup_num_steps", "train.schedule.warmup"},
		{"total_num_steps", "train.steps"}} {
		path := "scheduler.params." + p.key
		if n, ok := r.Int(path); ok && n > 0 {
			r.TakeInt(path, p.field, n)
		}
	}
	const key = "scheduler.params.warmup_max_lr"
	if lr, ok := r.Float(key); ok && lr > 0 && !r.im.Has("train.optimizer.lr") {
		r.Take(key, interop.Field{Path: "train.optimizer.lr", Value: number(lr)})
	}
}
