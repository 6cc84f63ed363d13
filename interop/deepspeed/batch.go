package deepspeed

import (
	"slices"
	"strconv"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/tree"
)

const (
	globalKey = "train_batch_size"
	microKey  = "train_micro_batch_size_per_gpu"
	stepsKey  = "gradient_accumulation_steps"
)

// readBatch reads the three batch size keys. Two of them and the number of data-parallel ranks give the third.
// Source: DeepSpeed 0.19.8, runtime/config.py: _set_batch_related_parameters, _batch_assertion.
func (r *reader) readBatch() {
	global, hasGlobal := r.Positive(globalKey)
	micro, hasMicro := r.Positive(microKey)
	steps, hasSteps := r.Positive(stepsKey)
	isAuto := r.IsAuto(globalKey) || r.IsAuto(microKey)
	if !hasGlobal && !hasMicro && !isAuto && len(r.Diags) == 0 {
		r.Wrong(globalKey, Missing, "", "neither %s nor %s is given; DeepSpeed needs one of them", globalKey,
			microKey)
	}
	if hasMicro {
		r.TakeInt(microKey, "plan.micro_batch", micro)
	}
	switch {
	case hasSteps:
		r.TakeInt(stepsKey, "plan.micro_batches", steps)
	case hasGlobal != hasMicro && !isAuto && !r.IsAuto(stepsKey):
		steps, hasSteps = 1, true
		r.im.DefaultField("plan.micro_batches", "1", "no "+stepsKey)
	}
	dp, all, tp := r.dpRanks(), 0, countedTwice(r)
	if hasGlobal {
		takeGlobal(r, global, tp)
	}
	if hasMicro && hasSteps {
		batch, ok := r.GlobalBatch(microKey, micro, stepsKey, steps, max(dp, 1))
		if !ok {
			return
		}
		all = batch
	}
	ranks := "data-parallel ranks"
	if tp > 1 {
		ranks = "ranks, with those of tp"
	}
	switch {
	case dp == 0:
	case hasGlobal && hasMicro && hasSteps && global != all*tp:
		r.Wrong(globalKey, Conflict, strconv.Itoa(all*tp), "%s is %d, but %s %d × %s %d × %d %s = %d", globalKey,
			global, microKey, micro, stepsKey, steps, dp*tp, ranks, all*tp)
	case hasGlobal && !hasMicro && !r.IsAuto(microKey) && global%keytable.Product(max(steps, 1), dp*tp) != 0:
		r.Wrong(globalKey, Conflict, "", "%s is %d; it must be a multiple of %s %d · %d %s", globalKey, global,
			stepsKey, max(steps, 1), dp*tp, ranks)
	case hasGlobal && hasMicro && global%keytable.Product(micro, dp*tp) != 0:
		r.Wrong(globalKey, Conflict, "", "%s is %d; it must be a multiple of %s %d · %d %s", globalKey, global,
			microKey, micro, dp*tp, ranks)
	case hasMicro && hasSteps && !hasGlobal:
		f := interop.Field{Path: "train.global_batch", Value: strconv.Itoa(all), From: microKey + " · " + stepsKey +
			" · " + strconv.Itoa(dp) + " data-parallel ranks"}
		r.im.SetField(f)
	}
	if !r.im.Has("train.global_batch") {
		r.Absent("train.global_batch", "depends on the number of devices: "+microKey+" · "+stepsKey+" · "+
			"data-parallel ranks")
	}
}

// countedTwice returns the number of ranks of tp, which train_batch_size counts although they read the same sequences;
// 1 without AutoTP. A PipelineModule counts the data-parallel ranks alone.
// Source: DeepSpeed 0.19.8, __init__.py: initialize makes the DeepSpeedConfig without an mpu before the engine makes
// the groups of AutoTP; runtime/config.py: world_size is then that of all processes. transformers 5.23.0 and Accelerate
// 1.15.0 fill "auto" with the same number.
func countedTwice(r *reader) int {
	f, ok := r.im.Field("plan.tp")
	n, err := strconv.Atoi(f.Value)
	if !ok || err != nil || n < 1 || r.Has("pipeline") {
		return 1
	}
	return n
}

// takeGlobal takes the sequences of a step from train_batch_size.
func takeGlobal(r *reader, global, tp int) {
	if global%tp != 0 {
		if len(r.Diags) == 0 {
			r.Wrong(globalKey, Conflict, "", "%s is %d; it must be a multiple of the %d ranks of tp, which DeepSpeed "+
				"counts", globalKey, global, tp)
		}
		return
	}
	r.TakeInt(globalKey, "train.global_batch", global/tp)
	if tp > 1 {
		r.im.AddNote(r.Doc.Root.Find(globalKey).Pos, "%s %d counts the %d ranks of tp, which read the same "+
			"sequences: a step has %d", globalKey, global, tp, global/tp)
	}
}

// dpRanks returns the number of data-parallel ranks, 0 if it is not known.
func (r *reader) dpRanks() int {
	dp := r.devices
	for _, path := range []string{"plan.tp", "plan.cp", "plan.pp"} {
		f, ok := r.im.Field(path)
		n, err := strconv.Atoi(f.Value)
		if !ok || err != nil || n < 1 {
			return 0
		}
		if dp%n != 0 {
			if dp > 0 {
				r.Diags.Addf(f.Pos, Conflict, "%s %d must divide %d devices", f.From, n, r.devices)
			}
			return 0
		}
		dp /= n
	}
	return dp
}

// keepGlobalBatch makes edits keep the global batch of a file whose number of replicas only the training code says.
// DeepSpeed then computes the accumulation steps.
func keepGlobalBatch(im *interop.Import, doc *tree.Doc) {
	if _, ok := doc.Root.Get(globalKey).Int(); !ok {
		return
	}
	im.Values = func(t *interop.Target) []interop.Value {
		out := slices.DeleteFunc(values(t), func(v interop.Value) bool { return v.Key == globalKey })
		for i := range out {
			switch out[i].Key {
			case stepsKey:
				out[i].IsAbsent = true
			case microKey:
				out[i].Plan = []string{"micro_batch", "micro_batches"} // it is set if the steps are removed
			}
		}
		return out
	}
}
