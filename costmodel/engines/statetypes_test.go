package engines

import (
	"testing"

	"github.com/planc-dev/planc/ir"
)

// bf16Preset keeps all state in f32.
var bf16Preset = ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32,
	Moments: ir.F32}

// Types that a job pins replace the engine's own, if the engine supports them.
func TestPinnedTypesOfState(t *testing.T) {
	grads := func(p *ir.Precision) { p.Grads, p.Reduce = ir.BF16, ir.BF16 }
	moments := func(p *ir.Precision) { p.Moments = ir.BF16 }
	halfMaster := func(p *ir.Precision) { p.Master = ir.F16 }
	noMaster := func(p *ir.Precision) { p.Master = p.Params }
	all := func(p *ir.Precision) { grads(p); moments(p); noMaster(p) }
	for _, c := range []struct {
		engine, what string
		pin          func(*ir.Precision)
		want         int // bytes a parameter
	}{
		{"planc", "gradients", grads, 16}, {"planc", "moments", moments, 14}, {"planc", "all", all, 8},
		{"megatron", "gradients", grads, 16}, {"megatron", "moments", moments, 14},
		{"megatron", "an fp16 master copy", halfMaster, 16},
		{"megatron", "no master copy, which it does not support", noMaster, 18},
		{"megatron", "all", all, 12},
		{"megatron-fsdp", "gradients", grads, 16}, {"megatron-fsdp", "moments", moments, 14},
		{"deepspeed", "gradients, as without", grads, 16}, {"deepspeed", "moments", moments, 12},
		{"deepspeed", "an fp16 master copy, which it does not support", halfMaster, 16},
		{"deepspeed", "no master copy", noMaster, 12}, {"deepspeed", "all", all, 8},
		{"fsdp", "moments", moments, 12}, {"fsdp", "all", all, 8},
		{"hai-llm", "gradients, which it does not support", grads, 14}, {"hai-llm", "all", all, 14},
	} {
		p := bf16Preset
		c.pin(&p)
		if got := EngineOf(c.engine).State(p).BytesPerParam(); got != c.want {
			t.Errorf("%s with %s pinned keeps %d bytes a parameter, want %d", c.engine, c.what, got, c.want)
		}
	}
}

// DeepSpeed accumulates gradients in f32 in addition to bf16, unless there is no f32 master copy.
func TestGradientsAreSummedInF32OnlyWithMasterCopy(t *testing.T) {
	e, p := EngineOf("deepspeed"), bf16Preset
	if got := e.Sums(e.State(p)); got != 4 {
		t.Errorf("with a master copy, sums have %d bytes, want 4", got)
	}
	p.Master = p.Params
	if got := e.Sums(e.State(p)); got != 2 {
		t.Errorf("without a master copy, sums have %d bytes, want 2", got)
	}
}
