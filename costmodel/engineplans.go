package costmodel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Shape is what rules of engines look at beside the plan.
type Shape struct {
	Layers  int
	KVHeads int  // 0: the model has no attention
	Given   bool // the job gives stage_layers
}

// PlanRule is a rule that the plans of an engine keep: of other plans the engine can run none.
type PlanRule struct {
	Engine  string
	Key     string // of the plan
	When    string // the rule in words
	Instead string // what a job that breaks it can set
	Source  string // where the engine says so
	OK      func(p *ir.Plan, m *Shape) bool
	Value   func(p *ir.Plan, m *Shape) string // says more than the key's value; nil: that is enough
}

// Why says what is wrong with a plan that breaks the rule: its value, what the engine runs, what to set instead.
func (r *PlanRule) Why(p *ir.Plan, m *Shape, value string) string {
	if r.Value != nil {
		value = r.Value(p, m)
	}
	return fmt.Sprintf("%s %s: %s (%s)", r.Key, value, r.When, r.Instead)
}

// PlanRules are those of all engines but planc's own, which runs every legal plan. Published runs are priced whether
// they keep them or not: patched versions of these engines ran some of them.
var PlanRules = slices.Concat(megatronRules, megatronFSDPRules, deepspeedRules, fsdpRules, haiRules)

// PlanRules are the rules of the engine; none for planc's own.
func (e *Engine) PlanRules() []*PlanRule { return rulesOf[e.Name] }

// rulesOf are the rules by the name of their engine.
var rulesOf = func() map[string][]*PlanRule {
	out := map[string][]*PlanRule{}
	for i := range PlanRules {
		out[PlanRules[i].Engine] = append(out[PlanRules[i].Engine], &PlanRules[i])
	}
	return out
}()

var megatronRules = []PlanRule{
	{"megatron", "zero", "engine megatron runs zero 0 and 1, its distributed optimizer",
		"engine megatron-fsdp runs zero 2 and 3",
		"Megatron-LM, arguments.py: --use-distributed-optimizer; ZeRO 2 and 3 need --use-megatron-fsdp",
		mostZero(1), nil},
	schedulesOf("megatron", "Megatron-LM, core/pipeline_parallel/schedules.py: get_forward_backward_func", "1f1b",
		"interleaved"),
	{Engine: "megatron", Key: "pp", When: "engine megatron splits layers evenly",
		Instead: "plan.stage_layers gives another split, Megatron's --pipeline-model-parallel-layout",
		Source: "Megatron-LM, arguments.py: num_layers must be divisible by the pipeline size; " +
			"core/transformer/transformer_config.py",
		OK: func(p *ir.Plan, m *Shape) bool {
			return m.Given || p.PP == 1 || m.Layers%(p.PP*p.VPP) == 0
		}, Value: unevenChunks},
	selectiveWhole("megatron", "Megatron-LM, arguments.py: --recompute-granularity selective takes no "+
		"--recompute-num-layers"),
	ordersOf("megatron", "Megatron-LM, core/parallel_state.py: order tp-cp-ep-dp-pp, or tp-cp-ep-pp-dp with "+
		"--use-tp-pp-dp-mapping",
		"tp,dp", "tp,dp,pp", "tp,pp,dp", "tp,cp,dp", "tp,cp,dp,pp", "tp,cp,pp,dp"),
}

var megatronFSDPRules = []PlanRule{
	{"megatron-fsdp", "pp", "engine megatron-fsdp has no pipeline", "pp 1, or engine megatron",
		"Megatron Core user guide, Megatron-FSDP: its device meshes have data, tensor, context and expert parallel " +
			"dimensions", func(p *ir.Plan, _ *Shape) bool {
			return p.PP == 1
		}, nil},
	selectiveWhole("megatron-fsdp", "Megatron-LM, arguments.py: --recompute-granularity selective takes no "+
		"--recompute-num-layers"),
	ordersOf("megatron-fsdp", "Megatron-Bridge, training/config.py: use_tp_pp_dp_mapping is not supported with "+
		"Megatron FSDP", "tp,dp", "tp,dp,pp", "tp,cp,dp", "tp,cp,dp,pp"),
}

var deepspeedRules = []PlanRule{
	{"deepspeed", "zero", "engine deepspeed runs a pipeline with zero 0 and 1 alone", "pp 1 allows zero 2 and 3",
		"DeepSpeed, runtime/pipe/engine.py: ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism",
		pipelinedZero, nil},
	{"deepspeed", "zero_group", "engine deepspeed shares state in groups smaller than dp with zero 3 alone, as MiCS",
		"zero 3, or no zero_group",
		"DeepSpeed, runtime/zero/config.py: mics_shard_size", func(p *ir.Plan, _ *Shape) bool {
			return p.Zero == 0 || p.Zero == 3 || p.ZeroGroup >= p.Replicas()
		}, nil},
	schedulesOf("deepspeed", "DeepSpeed, runtime/pipe/schedule.py: TrainSchedule", "1f1b"),
	contextsOf("deepspeed", "DeepSpeed, sequence/layer.py: DistributedAttention (Ulysses)", "heads"),
	{"deepspeed", "cp", "engine deepspeed runs cp above 1 with tp 1 and pp 1 alone", "cp 1, or tp 1 and pp 1",
		"Megatron-DeepSpeed, core/parallel_state.py: sequence parallel does not work with tensor parallel or " +
			"pipeline parallel", func(p *ir.Plan, _ *Shape) bool {
			return p.CP == 1 || p.TP*p.PP == 1
		}, nil},
	selectiveWhole("deepspeed", "Megatron-DeepSpeed, arguments.py, as Megatron-LM's"),
	ordersOf("deepspeed", "DeepSpeed, runtime/pipe/topology.py: PipeModelDataParallelTopology", "tp,dp", "tp,dp,pp",
		"tp,cp,dp"),
}

var fsdpRules = []PlanRule{
	{"fsdp", "tp", "engine fsdp splits K/V heads over tp and does not repeat them: tp divides them",
		"a tp that divides them, or engine megatron",
		"torchtitan, models/llama3/infra/parallelize.py: heads are sharded by DTensor",
		func(p *ir.Plan, m *Shape) bool {
			return m.KVHeads == 0 || m.KVHeads%p.TP == 0
		}, nil},
	{"fsdp", "zero", "engine fsdp reduces gradients once a step in a pipeline: zero is 0 or 1",
		"pp 1 allows zero 2 and 3",
		"PyTorch, distributed/pipelining/stage.py: backward_maybe_with_nosync", pipelinedZero, nil},
	schedulesOf("fsdp", "PyTorch, distributed/pipelining/schedules.py", "gpipe", "1f1b", "interleaved", "zb-v"),
	contextsOf("fsdp", "PyTorch, distributed/tensor/experimental: context_parallel, set_rotate_method",
		"gather", "ring"),
	ordersOf("fsdp", "torchtitan, distributed/parallel_dims.py: the mesh is pp, dp, cp, tp", "tp,dp", "tp,dp,pp",
		"tp,cp,dp", "tp,cp,dp,pp"),
}

var haiRules = []PlanRule{
	{"hai-llm", "tp", "engine hai-llm is known to train without tensor parallelism", "tp 1, or engine megatron",
		"DeepSeek-V3 Technical Report, 3.2: without using costly tensor parallelism",
		func(p *ir.Plan, _ *Shape) bool { return p.TP == 1 }, nil},
	{"hai-llm", "zero", "engine hai-llm is known to run zero 0 and 1", "zero 1, or engine megatron-fsdp",
		"DeepSeek-V3 Technical Report, 3.2: ZeRO-1 data parallelism", mostZero(1), nil},
	{"hai-llm", "cp", "engine hai-llm is known to train without context parallelism", "cp 1, or engine megatron",
		"DeepSeek-V3 Technical Report, 3.2: pipeline, expert and data parallelism",
		func(p *ir.Plan, _ *Shape) bool { return p.CP == 1 }, nil},
	schedulesOf("hai-llm", "DeepSeek-V3 Technical Report, 3.2.1: DualPipe, whose bubble is that of zb-h1", "zb-h1"),
}

// unevenChunks says how many chunks the layers do not divide into.
func unevenChunks(p *ir.Plan, m *Shape) string {
	pp := fmt.Sprint(p.PP)
	if p.VPP > 1 {
		pp += fmt.Sprintf(" · vpp %d", p.VPP)
	}
	return fmt.Sprintf("%s: %d layers do not divide into %d chunks", pp, m.Layers, p.PP*p.VPP)
}

// mostZero holds of plans that shard up to a stage of ZeRO.
func mostZero(most int) func(*ir.Plan, *Shape) bool {
	return func(p *ir.Plan, _ *Shape) bool { return p.Zero <= most }
}

// pipelinedZero holds of plans that shard no more than the optimizer's state in a pipeline.
func pipelinedZero(p *ir.Plan, _ *Shape) bool { return p.PP == 1 || p.Zero <= 1 }

// schedulesOf is the rule of an engine that runs these schedules of pipelines.
func schedulesOf(engine, source string, names ...string) PlanRule {
	list := joined(names)
	return PlanRule{engine, "schedule", fmt.Sprintf("engine %s runs pipelines as %s", engine, list),
		"engine planc runs every schedule", source,
		func(p *ir.Plan, _ *Shape) bool { return p.Schedule == "none" || slices.Contains(names, p.Schedule) }, nil}
}

// contextsOf is the rule of an engine that has these kinds of context parallelism.
func contextsOf(engine, source string, names ...string) PlanRule {
	return PlanRule{engine, "cp_kind", fmt.Sprintf("engine %s has cp_kind %s", engine, joined(names)),
		"engine megatron has gather, heads and ring", source,
		func(p *ir.Plan, _ *Shape) bool { return p.CP == 1 || slices.Contains(names, p.CPKind) }, nil}
}

// ordersOf is the rule of an engine that lays out ranks in these orders.
func ordersOf(engine, source string, orders ...string) PlanRule {
	return PlanRule{engine, "axis_order", fmt.Sprintf("engine %s lays out ranks as %s", engine, joined(orders)),
		"one of these, or engine planc", source,
		func(p *ir.Plan, _ *Shape) bool { return slices.Contains(orders, p.AxisOrder) }, nil}
}

// selectiveWhole is the rule of an engine that recomputes attention of all blocks or of none.
func selectiveWhole(engine, source string) PlanRule {
	return PlanRule{engine, "recompute_layers", fmt.Sprintf("engine %s recomputes selectively in all blocks", engine),
		"recompute full takes a number of blocks", source,
		func(p *ir.Plan, _ *Shape) bool {
			return p.Recompute != "selective" || p.RecomputeLayers >= p.LargestChunk()
		}, nil}
}

// joined is a list as a sentence has it: "1f1b", "1f1b and interleaved".
func joined(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
