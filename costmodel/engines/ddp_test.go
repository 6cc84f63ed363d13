package engines

import (
	"testing"

	"github.com/planc-dev/planc/ir"
)

// replicated returns a plan of replicas without other parallelism.
func replicated(dp, microBatches int) *ir.Plan {
	p := ir.SerialPlan(12, 4, bf16Preset)
	p.DP, p.MicroBatches = dp, microBatches
	return &p
}

// Under PyTorch's DDP the optimizer's type is that of parameters, gradients and moments: 4 + 4 + 8 bytes in mixed
// precision, 2 + 2 + 4 in pure BF16. FSDP and other engines keep what State returned.
func TestDDPKeepsOneType(t *testing.T) {
	pure := ir.FullPrecision(ir.BF16)
	f32 := ir.FullPrecision(ir.F32)
	noMaster := bf16Preset
	noMaster.Master = ir.BF16
	tp := replicated(1, 1)
	tp.TP = 8
	for _, c := range []struct {
		engine, what string
		job          ir.Precision
		plan         *ir.Plan
		zero         int
		want         ir.Precision
		bytes        int
	}{
		{"fsdp", "mixed", bf16Preset, replicated(8, 1), 0, ir.Precision{Compute: ir.BF16, Params: ir.F32, Grads: ir.F32,
			Reduce: ir.F32, Master: ir.F32, Moments: ir.F32}, 16},
		{"fsdp", "mixed, one GPU", bf16Preset, replicated(1, 1), 0, ir.Precision{Compute: ir.BF16, Params: ir.F32,
			Grads: ir.F32, Reduce: ir.F32, Master: ir.F32, Moments: ir.F32}, 16},
		{"fsdp", "no master copy", noMaster, replicated(8, 1), 0, pure, 8},
		{"fsdp", "FP32", f32, replicated(8, 1), 0, f32, 16},
		{"fsdp", "mixed, sharded", bf16Preset, replicated(8, 1), 3, EngineOf("fsdp").State(bf16Preset), 16},
		{"fsdp", "mixed, only tp", bf16Preset, tp, 0, EngineOf("fsdp").State(bf16Preset), 16},
		{"megatron", "mixed", bf16Preset, replicated(8, 1), 0, EngineOf("megatron").State(bf16Preset), 18},
	} {
		e := EngineOf(c.engine)
		got := e.PlanState(e.State(c.job), c.plan, c.zero)
		if got != c.want || got.BytesPerParam() != c.bytes {
			t.Errorf("%s, %s: %+v with %d bytes, want %+v with %d", c.engine, c.what, got, got.BytesPerParam(), c.want,
				c.bytes)
		}
	}
}

// DDP's buckets are a second copy of the gradients. PyTorch's pull request 41954 measured that without them RoBERTa,
// with 1 GB of FP32 parameters, needs 8,250 - 7,183 MB less. Autocast adds a 16-bit copy of the weights. FSDP 1 without
// sharding has neither.
func TestCostsOfDDP(t *testing.T) {
	e := EngineOf("fsdp")
	mixed := e.PlanState(e.State(bf16Preset), replicated(8, 1), 0)
	noShard, f32, pure := mixed, ir.FullPrecision(ir.F32), ir.FullPrecision(ir.BF16)
	noShard.Reduce = ir.BF16
	for _, c := range []struct {
		what string
		prec ir.Precision
		plan *ir.Plan
		zero int
		want PlainCosts
	}{
		{"FP32", f32, replicated(8, 1), 0, PlainCosts{Buckets: 4, Step: 16}},
		{"mixed", mixed, replicated(8, 1), 0, PlainCosts{Buckets: 4, Casts: 2, Forward: 6, Backward: 6, Step: 16}},
		{"mixed, 4 micro-batches", mixed, replicated(8, 4), 0, PlainCosts{Buckets: 4, Casts: 2, Forward: 6,
			Backward: 6 + 12*3/4, Step: 16}},
		{"mixed, one GPU", mixed, replicated(1, 1), 0, PlainCosts{Casts: 2, Forward: 6, Backward: 6}},
		{"pure BF16", pure, replicated(8, 1), 0, PlainCosts{Buckets: 2, Step: 8}},
		{"NO_SHARD", noShard, replicated(8, 1), 0, PlainCosts{Forward: 6, Backward: 6}},
		{"FSDP", e.State(bf16Preset), replicated(8, 1), 2, PlainCosts{}},
	} {
		if got := e.PlainCosts(&c.prec, c.plan, c.zero); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
	const params = 250_000_000 // 1 GB in FP32
	buckets := e.PlainCosts(&f32, replicated(8, 1), 0)
	if got := buckets.Memory(params) / 1e6; got < 950 || got > 1100 {
		t.Errorf("buckets of 1 GB of parameters take %d MB, measured: 1,067", got)
	}
	for _, other := range Engines {
		if got := other.PlainCosts(&f32, replicated(8, 1), 0); other.Name != "fsdp" && got != (PlainCosts{}) {
			t.Errorf("%s: %+v, want none", other.Name, got)
		}
	}
}
