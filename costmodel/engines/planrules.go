package engines

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Shape holds what the rules of engines need to know in addition to the plan.
type Shape struct {
	KVHeads int // 0: the model has no attention
	Group   int // query heads per K/V head
}

// PlanRule is a rule for the plans that an engine can run.
type PlanRule struct {
	Engine  string
	Key     string // of the plan
	When    string // the rule in words
	Instead string // what to set in a job that breaks it
	Source  string // where the engine documents it
	OK      func(p *ir.Plan, m *Shape) bool
	Value   func(p *ir.Plan, m *Shape) string // describes the value in more detail; nil: the key's value is enough
}

// Why explains why a plan breaks the rule: its value, what the engine runs, and what to set instead.
func (r *PlanRule) Why(p *ir.Plan, m *Shape, value string) string {
	if r.Value != nil {
		value = r.Value(p, m)
	}
	return fmt.Sprintf("%s %s: %s (%s)", r.Key, value, r.When, r.Instead)
}

// PlanRules are the rules of all engines except planc's own, which runs every legal plan. Published runs are priced
// even if they break the rules, because some used patched versions of the engines.
var PlanRules = slices.Concat(megatronRules, megatronFSDPRules, deepspeedRules, fsdpRules, haiRules)

// PlanRules returns the rules of the engine; planc's own has none.
func (e *Engine) PlanRules() []*PlanRule { return rulesOf[e.Name] }

// rulesOf maps the names of engines to their rules.
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
	expertsWithSP("megatron"),
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
	expertsWithSP("megatron-fsdp"),
	selectiveWhole("megatron-fsdp", "Megatron-LM, arguments.py: --recompute-granularity selective takes no "+
		"--recompute-num-layers"),
	ordersOf("megatron-fsdp", "Megatron-Bridge, training/config.py: use_tp_pp_dp_mapping is not supported with "+
		"Megatron FSDP", "tp,dp", "tp,dp,pp", "tp,cp,dp", "tp,cp,dp,pp"),
}

var deepspeedRules = []PlanRule{
	{"deepspeed", "zero", "engine deepspeed runs a pipeline only with zero 0 and 1",
		"pp 1 allows zero 2 and 3",
		"DeepSpeed, runtime/pipe/engine.py: ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism",
		pipelinedZero, nil},
	{"deepspeed", "zero_group", "engine deepspeed shards state over all replicas", "no zero_group, or engine fsdp",
		"DeepSpeed 0.19.8, runtime/config.py: mics_shard_size (MiCS) has been removed",
		func(p *ir.Plan, _ *Shape) bool { return p.Zero == 0 || p.ZeroGroup >= p.Replicas() }, nil},
	schedulesOf("deepspeed", "DeepSpeed, runtime/pipe/schedule.py: TrainSchedule", "1f1b"),
	contextsOf("deepspeed", "DeepSpeed, sequence/layer.py: DistributedAttention (Ulysses)", "heads"),
	{"deepspeed", "cp", "engine deepspeed runs cp above 1 only with tp 1 and pp 1", "cp 1, or tp 1 and pp 1",
		"Megatron-DeepSpeed, core/parallel_state.py: sequence parallel does not work with tensor parallel or " +
			"pipeline parallel", func(p *ir.Plan, _ *Shape) bool {
			return p.CP == 1 || p.TP*p.PP == 1
		}, nil},
	selectiveWhole("deepspeed", "Megatron-DeepSpeed, arguments.py, as Megatron-LM's"),
	ordersOf("deepspeed", "DeepSpeed, runtime/pipe/topology.py: PipeModelDataParallelTopology", "tp,dp", "tp,dp,pp",
		"tp,cp,dp"),
}

var fsdpRules = []PlanRule{
	{"fsdp", "tp", "engine fsdp splits heads evenly over tp and does not repeat them",
		"a tp that divides them, or engine megatron",
		"torchtitan, models/llama3/infra/parallelize.py: heads are sharded by DTensor",
		func(p *ir.Plan, m *Shape) bool {
			return m.KVHeads == 0 || m.KVHeads%p.TP == 0
		}, unevenHeads},
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

// HeadsName returns what messages call the K/V heads of a model, by the query heads per K/V head: those of a model
// without groups are its attention heads.
func HeadsName(group int) string {
	if group <= 1 {
		return "attention heads"
	}
	return "K/V heads"
}

// unevenHeads returns the number of heads that tp does not divide.
func unevenHeads(p *ir.Plan, m *Shape) string {
	return fmt.Sprintf("%d does not divide the %d %s", p.TP, m.KVHeads, HeadsName(m.Group))
}

// mostZero returns a condition that holds for plans up to a stage of ZeRO.
func mostZero(limit int) func(*ir.Plan, *Shape) bool {
	return func(p *ir.Plan, _ *Shape) bool { return p.Zero <= limit }
}

// pipelinedZero reports whether a plan with a pipeline shards at most the optimizer state.
func pipelinedZero(p *ir.Plan, _ *Shape) bool { return p.PP == 1 || p.Zero <= 1 }

// schedulesOf returns the rule of an engine that supports only these pipeline schedules.
func schedulesOf(engine, source string, names ...string) PlanRule {
	list := joined(names)
	return PlanRule{engine, "schedule", fmt.Sprintf("engine %s runs pipelines as %s", engine, list),
		"engine planc runs every schedule", source,
		func(p *ir.Plan, _ *Shape) bool { return p.Schedule == "none" || slices.Contains(names, p.Schedule) }, nil}
}

// contextsOf returns the rule of an engine that supports only these kinds of context parallelism.
func contextsOf(engine, source string, names ...string) PlanRule {
	return PlanRule{engine, "cp_kind", fmt.Sprintf("engine %s has cp_kind %s", engine, joined(names)),
		"engine megatron has gather, heads and ring", source,
		func(p *ir.Plan, _ *Shape) bool { return p.CP == 1 || slices.Contains(names, p.CPKind) }, nil}
}

// ordersOf returns the rule of an engine that supports only these orders of ranks.
func ordersOf(engine, source string, orders ...string) PlanRule {
	return PlanRule{engine, "axis_order", fmt.Sprintf("engine %s lays out ranks as %s", engine, joined(orders)),
		"one of these, or engine planc", source,
		func(p *ir.Plan, _ *Shape) bool { return slices.Contains(orders, p.AxisOrder) }, nil}
}

// expertsWithSP returns the rule of an engine that trains experts with tensor parallelism only if it also shards the
// sequence. A plan of a model with experts has a capacity factor.
func expertsWithSP(engine string) PlanRule {
	return PlanRule{engine, "sp", fmt.Sprintf("engine %s trains experts with tp above 1 only with sp", engine),
		"sp true, or tp 1", "Megatron-Core 0.7 to 0.19, core/transformer/moe/moe_layer.py: MoELayer.forward raises " +
			"an error in training; Megatron-Core 0.4 to 0.6, core/model_parallel_config.py, with ep above 1",
		func(p *ir.Plan, _ *Shape) bool { return p.MoESlack == 0 || p.TP == 1 || p.SP }, nil}
}

// selectiveWhole returns the rule of an engine that recomputes attention in all blocks or in none.
func selectiveWhole(engine, source string) PlanRule {
	return PlanRule{engine, "recompute_layers", fmt.Sprintf("engine %s recomputes selectively in all blocks", engine),
		"recompute full takes a number of blocks", source,
		func(p *ir.Plan, _ *Shape) bool {
			return p.Recompute != "selective" || p.RecomputeLayers >= p.LargestChunk()
		}, nil}
}

// joined returns a list in words: "1f1b", "1f1b and interleaved".
func joined(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
