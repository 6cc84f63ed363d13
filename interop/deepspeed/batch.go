package deepspeed

import (
	"strconv"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
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
	if hasGlobal {
		r.TakeInt(globalKey, "train.global_batch", global)
	}
	dp, all := r.dpRanks(), 0
	if hasMicro && hasSteps {
		batch, ok := r.GlobalBatch(microKey, micro, stepsKey, steps, max(dp, 1))
		if !ok {
			return
		}
		all = batch
	}
	switch {
	case dp == 0:
	case hasGlobal && hasMicro && hasSteps && global != all:
		r.Wrong(globalKey, Conflict, strconv.Itoa(all), "%s is %d, but %s %d × %s %d × %d data-parallel ranks = %d",
			globalKey, global, microKey, micro, stepsKey, steps, dp, all)
	case hasGlobal && !hasMicro && !r.IsAuto(microKey) && global%keytable.Product(max(steps, 1), dp) != 0:
		r.Wrong(globalKey, Conflict, "", "%s is %d; it must be a multiple of %s %d · %d data-parallel ranks", globalKey,
			global, stepsKey, max(steps, 1), dp)
	case hasGlobal && hasMicro && global%keytable.Product(micro, dp) != 0:
		r.Wrong(globalKey, Conflict, "", "%s is %d; it must be a multiple of %s %d · %d data-parallel ranks", globalKey,
			global, microKey, micro, dp)
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
