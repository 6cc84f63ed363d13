package engines

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// StateTypes are the types of state that a runtime supports with 16-bit weights, in addition to those of
// [MemoryUse.Bytes16].
type StateTypes struct {
	NarrowGrads bool      // gradients are accumulated and reduced in the type of the weights
	NoMaster    bool      // the weights serve as the optimizer's copy
	Masters     []ir.Elem // types of a separate master copy
	Moments     []ir.Elem // types of the optimizer's moments
}

// megatronState: --grad-reduce-in-bf16, and --use-precision-aware-optimizer with --main-grads-dtype,
// --main-params-dtype, --exp-avg-dtype and --exp-avg-sq-dtype.
// Source: Megatron-LM 0.19.2, training/arguments.py and core/optimizer/optimizer_config.py. Main parameters are always
// kept. planc counts them in f32 as 4 bytes, although the default store_param_remainders may keep only 2.
var megatronState = StateTypes{NarrowGrads: true, Masters: []ir.Elem{ir.F16}, Moments: []ir.Elem{ir.BF16, ir.F16}}

// deepspeedState: bf16_master_weights_and_grads, bf16_optimizer_states and fp16_master_weights_and_grads.
// Source: DeepSpeed 0.19.8, runtime/precision_config.py.
var deepspeedState = StateTypes{NarrowGrads: true, NoMaster: true, Moments: []ir.Elem{ir.BF16, ir.F16}}

// fsdpState: PyTorch's optimizers keep moments in the type of the parameters, and no master copy.
// Source: PyTorch, torch/optim/adam.py: zeros_like(p).
var fsdpState = StateTypes{NarrowGrads: true, NoMaster: true, Moments: []ir.Elem{ir.BF16, ir.F16}}

// apply returns the types of an engine with those that a job pins, if the engine supports them.
func (t *StateTypes) apply(engine, job ir.Precision) ir.Precision {
	if t.NarrowGrads && job.Grads == job.Params {
		engine.Grads, engine.Reduce = job.Params, job.Params
	}
	if job.Master == job.Params && t.NoMaster || job.Master != job.Params && slices.Contains(t.Masters, job.Master) {
		engine.Master = job.Master
	}
	if slices.Contains(t.Moments, job.Moments) {
		engine.Moments = job.Moments
	}
	return engine
}

// sumsWide reports whether gradients are accumulated in f32 in addition to the 16-bit ones. DeepSpeed's
// bf16_master_weights_and_grads, without an f32 master copy, accumulates them in bf16.
func (e *Engine) sumsWide(state ir.Precision) bool {
	return e.SumsWide && state.Grads == ir.BF16 && state.Master == ir.F32
}
