package engines

import (
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Engine is the runtime of a trainer as the model sees it: what differs between runtimes on the same hardware. Each
// constant is the same for all models, plans and GPUs. Constants marked "fitted" come from the fit over published runs
// that docs/validation.md reports, without the held-out sources. The others come from the engine's source code or
// paper.
type Engine struct {
	Name string
	Doc  string
	// engine whose measured runs also stand for this one, because it has that engine's constants; "": its own
	Like string

	costmodel.Kernels
	Blocks
	Traffic
	MemoryUse
}

// Blocks says how a runtime computes transformer layers.
type Blocks struct {
	Elementwise float64 // traffic of element-wise ops, relative to well fused kernels
	FloatLogits bool    // logits are converted to f32 and the loss is computed op by op
	Unfused     bool    // attention scores are written to memory
	// separate kernels add weight gradients to the accumulated ones after each micro-batch; otherwise the GEMM does
	SeparateSums bool
	// selective recomputation saves every second matmul's output and recomputes the rest; otherwise it recomputes only
	// scores
	Outputs bool
	// fraction of Host for kernels that a library launches in a loop of its own instead of as PyTorch ops, such as each
	// expert's GEMMs and casts (Transformer Engine's GroupedLinear)
	Looped float64
	// each expert has GEMM kernels of its own, and casts to FP8 with a scale per block too; otherwise one kernel covers
	// all experts
	PerExpert    bool
	OpByOp       bool // the router's choice and rotary positions run op by op in PyTorch; otherwise as fused kernels
	FusedExperts bool // an expert's activation and casts are fused into its GEMM kernels
	// the classifier's GEMM columns per tp rank are a multiple of this number; 0: no padding. For planc, see
	// VocabMultiple. For other engines, memory, the embedding and gradient traffic are priced with the vocabulary as it
	// is.
	PadVocab        int
	SplitsExperts   bool // the backward pass of layers with experts may be split in two
	RecomputesUp    bool // MLA's up-projections are recomputed
	Even            bool // layers are split evenly over chunks if they divide, unless the job gives stage_layers
	RecomputesNorms bool // norms are recomputed, and only their inputs are saved
	// the activation of the MLP and of experts is recomputed, and its inputs are saved in FP8 if operands are
	RecomputesActivation bool
	Graphed              Graphed // kernels that the host launches together as CUDA graphs, up to this level
}

// Traffic says how the communication of a runtime overlaps compute, and what it sends.
type Traffic struct {
	Overlap [2]bool // data-parallel traffic overlaps compute: with ZeRO 0, and with higher stages
	// parameters are gathered during the next step's first forward pass. Engines that do not gather planc's buckets are
	// assumed to overlap all of it.
	Ahead    bool
	HiddenTP float64 // fraction of tensor-parallel collectives that overlaps matmuls, on sm_90 and later
	// fraction of the transfers to experts and back that can overlap another micro-batch's compute, at most the
	// function's own time
	HiddenEP                 float64
	SlowsEP                  float64 // slowdown of compute meanwhile, a fraction
	Blocking                 bool    // a stage waits for its sends to other stages
	OverlapsInterleavedSends bool    // except for those of an interleaved schedule, which overlap the next pass
	Scattered                bool    // sends are split over tensor-parallel ranks
	// if matmuls are in FP8, tokens are sent to experts, and gradients back to their sources, in FP8; the other
	// direction is in 16 bits
	NarrowSent bool
	// a token is sent once to each rank and node that has any of its experts; otherwise once per expert
	Once bool
	// slowdown of compute, a fraction, while data-parallel traffic overlaps it and takes multiprocessors and memory
	// bandwidth
	Interfere float64
	Sharded   costmodel.Contention // cost of the traffic of ZeRO 2 and 3 during each pass; Slows 0: Interfere
}

// MemoryUse is the memory of a runtime in addition to a plan's arena. It is fitted to the memory that tools reported
// for whole devices, unless the field says otherwise.
type MemoryUse struct {
	Context    costmodel.Bytes // CUDA context and libraries of a rank
	Group      costmodel.Bytes // buffers of a communicator, one for each axis with several ranks
	Slack      float64         // reserved but unused memory of the allocator, a fraction of activations and temporaries
	ShardGrads float64         // f32 gradients of a rank's shard during the update, a fraction of the optimizer's bytes
	SumsWide   bool            // gradients of bf16 are accumulated in f32, in addition to the 16-bit ones
	WideGrads  bool            // FSDP keeps gradients in f32, see holdsState
	Copies     int             // copies of parameters and their gradients with a pipeline; 0 means 1
	// a plan that shards nothing trains as under PyTorch's DDP, see [Engine.PlanState]
	PlainReplicas bool
	Bytes16       ir.Precision // types of state with 16-bit compute; its Compute and Params follow the job's
	Pinned        StateTypes   // types of state that a job can set instead
}

// Graphed is the set of kernels that CUDA graphs contain, which need no host time.
type Graphed uint8

// Levels of CUDA graphs.
const (
	NotGraphed    Graphed = iota
	GraphedRouter         // the router and the choice
	GraphedDense          // also attention and norms: everything except the experts
	GraphedStep           // everything
)

// PlancEngine is planc's own runtime. On a CPU its constants are measured on its kernels. On GPUs it has the constants
// of the most comparable engine, Megatron, because planc's own kernels are not measured.
var PlancEngine = &Engine{Name: "planc", Doc: "planc's own binaries", Like: "megatron",
	Kernels: costmodel.PlancKernels, Blocks: Blocks{Elementwise: 1, PadVocab: 64},
	Traffic: Traffic{Overlap: [2]bool{true, true}, Ahead: true, Interfere: 0.107,
		Sharded: costmodel.Contention{Slows: fsdpSlows, Gain: studiedGain}}}

// Engines are the engines that can be priced, planc's first. Other engines' PadVocab is the default of Megatron-LM's
// --make-vocab-size-divisible-by. Matrix, Attention, Elementwise, Host, Pass, Step and Interfere are fitted
// (tools/validate, 2026-11-22).
var Engines = []*Engine{
	PlancEngine,
	megatron,
	{Name: "deepspeed", Doc: "Megatron-DeepSpeed",
		Kernels: costmodel.Kernels{Matrix: 0.822, Attention: 1.03, Memory: 1, Launch: 2e-6, Host: 53e-6,
			Pass: 1.8e-3, Step: 9.6e-3},
		Blocks:  Blocks{Elementwise: 0.98, FloatLogits: true, PadVocab: 128},
		Traffic: Traffic{Blocking: true, Interfere: 0.1},
		MemoryUse: MemoryUse{Context: 2 << 30, Group: 1600 << 20, Slack: 0.08, ShardGrads: 1.0 / 3, SumsWide: true,
			Bytes16: mixed(ir.F16), Pinned: deepspeedState}},
	{Name: "fsdp", Doc: "PyTorch DDP, FSDP and FSDP2",
		Kernels: costmodel.Kernels{Matrix: 1.008, Attention: 0.724, Memory: 1, Launch: 2e-6, Host: 25e-6,
			Pass: 1.96e-3, Step: 10.2e-3},
		Blocks: Blocks{Elementwise: 2.56, FloatLogits: true, Outputs: true},
		Traffic: Traffic{Overlap: [2]bool{true, true}, Interfere: fsdpSlows,
			Sharded: costmodel.Contention{Gain: fsdpGain}},
		MemoryUse: MemoryUse{Context: 1536 << 20, Group: 700 << 20, Slack: 0.05, WideGrads: true,
			PlainReplicas: true, Bytes16: mixed(ir.F16), Pinned: fsdpState}},
	megatronFSDP(),
	haiEngine,
}

// megatronKernels are those of Megatron, and of HAI-LLM, whose report does not mention them.
var megatronKernels = costmodel.Kernels{Matrix: 1, Vendor: true, Attention: 0.76, Memory: 1, Launch: 2e-6,
	Host: 76.8e-6, Pass: 1.57e-3, Step: 5.1e-3}

// megatron is a variable of its own, because other engines copy its constants. It stands for 3D parallelism as its
// users run it, with ZeRO 0 or 1.
var megatron = &Engine{Name: "megatron", Doc: "Megatron-LM, Megatron-Core and NeMo", Kernels: megatronKernels,
	Blocks: Blocks{Elementwise: 1.03, FloatLogits: true, PadVocab: 128, Even: true, Looped: 0.496, PerExpert: true},
	Traffic: Traffic{Overlap: [2]bool{false, true}, Ahead: true, HiddenTP: 0.5, Blocking: true,
		OverlapsInterleavedSends: true, Scattered: true, Once: true, Interfere: 0.107,
		Sharded: costmodel.Contention{Gain: megatronGain}},
	MemoryUse: MemoryUse{Context: 1536 << 20, Group: 700 << 20, Slack: 0.05, Bytes16: mixed(ir.F32),
		Pinned: megatronState}}

// megatronFSDP returns Megatron-LM with --use-megatron-fsdp, with Megatron's constants: it has the same kernels, and
// none of its runs is a measured row. It gathers parameters before each use, so no gathers remain for the next step's
// first pass.
func megatronFSDP() *Engine {
	e := *megatron
	e.Name, e.Doc, e.Like = "megatron-fsdp", "Megatron-LM with Megatron-FSDP", megatron.Name
	e.Overlap, e.Ahead = [2]bool{true, true}, false
	return &e
}

// mixed returns 16-bit weights with an f32 master copy and f32 moments; F16 stands for the compute type. Gradients are
// reduced in 16 bits: Megatron's fp16 runs reduce the gradients that backward computed, and its recipes for bf16 set
// grad-reduce-in-bf16.
func mixed(grads ir.Elem) ir.Precision {
	return ir.Precision{Grads: grads, Reduce: ir.F16, Master: ir.F32, Moments: ir.F32}
}

// EngineOf returns an engine by its name, nil if there is none.
func EngineOf(name string) *Engine {
	for _, e := range Engines {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// State returns a precision as the engine applies it. With 16-bit weights, state has the engine's own types, except
// those that the job pins and the engine supports. The presets keep all state in f32, so a type in 16 bits is pinned.
// Only bf16 accumulates gradients in f32 (Megatron-LM's arguments.py: --bf16 sets accumulate_allreduce_grads_in_fp32).
func (e *Engine) State(p ir.Precision) ir.Precision {
	p.FP8 = p.FP8 && e.Own
	if e.Own || !p.Params.Narrow() {
		return p
	}
	q := e.Bytes16 // its FP8 matmuls belong to its layers instead of the program
	q.Compute, q.Params = p.Compute, p.Params
	if q.Grads.Narrow() || p.Params == ir.F16 {
		q.Grads = p.Params
	}
	if q.Reduce.Narrow() {
		q.Reduce = p.Params
	}
	return e.Pinned.apply(q, p)
}

// Sums returns the bytes per element in which weight gradients are accumulated over micro-batches, under State's
// precision.
func (e *Engine) Sums(state ir.Precision) int {
	if e.sumsWide(state) {
		return ir.F32.Size()
	}
	return state.Grads.Size()
}

// VocabMultiple returns the multiple to which planc pads a rank's part of the vocabulary on a cluster; 0: it does not
// pad. A row of 16-bit logits then begins at a multiple of 128 bytes. CPU kernels do not need it.
func (e *Engine) VocabMultiple(c *costmodel.Cluster) int {
	if !e.Own || c.IsCPU() {
		return 0
	}
	return e.PadVocab
}

// Sides reports whether planc puts weights side by side on a cluster, so that one GEMM multiplies by all of them. Only
// GPUs have kernels that read the parts of the result.
func (e *Engine) Sides(c *costmodel.Cluster) bool { return e.Own && !c.IsCPU() }

// PrepostsReceives reports whether planc's stages post a receive before the compute of the previous pass on a cluster.
// On a CPU the receiver copies a message from the sender's memory, so there is nothing to post.
func (e *Engine) PrepostsReceives(c *costmodel.Cluster) bool { return e.Own && !c.IsCPU() }

// ExposedTP returns the fraction of tensor-parallel collectives that compute waits for. They overlap matmuls, in
// chunks, only on sm_90 and later.
func (e *Engine) ExposedTP(c *costmodel.Cluster) float64 {
	if c.IsCPU() || c.GPU.Arch < "sm_90" && !strings.HasPrefix(c.GPU.Arch, "sm_1") {
		return 1
	}
	return 1 - e.HiddenTP
}

// Waits reports whether a pass of a plan ends only when its sends to the next stage are complete. With an interleaved
// schedule, Megatron-LM's sends overlap the next pass (commit f9283c5a of May 2023; the default since 4eeff55d of
// October 2023).
func (e *Engine) Waits(p *ir.Plan) bool {
	return e.Blocking && !(e.OverlapsInterleavedSends && p.VPP > 1)
}

// Holds returns the memory that a rank needs under the engine, from what its plan's arena would need.
func (e *Engine) Holds(m costmodel.Memory, p *ir.Plan) costmodel.Memory {
	if e.Own {
		return m
	}
	m = e.holdsState(m, p)
	groups := 0
	for _, n := range []int{p.DP, p.TP, p.PP} {
		groups += min(1, n-1)
	}
	m.Overhead = int64(e.Context) + int64(groups)*int64(e.Group) + e.reserved(m)
	m.Total, m.OverheadParts = 0, costmodel.OverheadParts{}
	for _, part := range costmodel.MemoryParts {
		m.Total += m.Part(part)
	}
	return m
}

// reserved returns the bytes that the allocator reserves and does not use.
func (e *Engine) reserved(m costmodel.Memory) int64 {
	return int64(e.Slack * float64(m.Activations+m.Workspace+m.Comm))
}

// Least returns what a rank needs in bytes, given what Holds returned, if fractions of the parts that
// costmodel.MemoryParts names are not on the device. Nothing is reserved for them either.
func (e *Engine) Least(m costmodel.Memory, absent map[string]float64) int64 {
	rest := func(part string) int64 {
		n := m.Part(part)
		return n - int64(absent[part]*float64(n))
	}
	least := int64(0)
	for _, part := range costmodel.MemoryParts {
		least += rest(part)
	}
	left := costmodel.Memory{Activations: rest("activations"), Workspace: rest("workspace"), Comm: rest("comm")}
	return least - e.reserved(m) + e.reserved(left)
}

// holdsState is Holds for parameters, gradients and optimizer only.
func (e *Engine) holdsState(m costmodel.Memory, p *ir.Plan) costmodel.Memory {
	if e.Own {
		return m
	}
	if e.sumsWide(p.Precision) {
		m.Grads += 2 * m.Grads // four bytes in addition to two
	}
	// FSDP's parameters are a rank's shards in FP32, here the master copy. Their gradients are cast to FP32 too, after
	// they are reduced in 16 bits; gradients that are not sharded yet are accumulated in FP32. Gathered parameters are
	// 16-bit copies. ZeRO 3 frees them after use, so that only 4 + 4 bytes of FP32 remain. That is what the 16-bit
	// parameters, the 16-bit gradients and the master copy of planc's ZeRO 3 take: 2 + 2 + 4.
	// Source: PyTorch 2.9, distributed/fsdp/_fully_shard: foreach_reduce casts to orig_dtype; FSDPParam has
	// _sharded_param_data, unsharded_accumulated_grad and free_unsharded_param.
	if e.WideGrads && p.Zero < 3 && p.Precision.Grads.Narrow() && p.Precision.Master == ir.F32 {
		m.Grads *= 2
	}
	if e.Copies > 1 && p.PP > 1 {
		m.Params, m.Grads = m.Params*int64(e.Copies), m.Grads*int64(e.Copies)
	}
	m.Optimizer += int64(e.ShardGrads * float64(m.Optimizer))
	return m
}

// FitProbability is [Memory.Probability] for an engine: for other runtimes the error is that of measured runs.
func (e *Engine) FitProbability(m costmodel.Memory, device costmodel.Bytes) float64 {
	if e.Own {
		return m.Probability(device)
	}
	return m.FitProbability(device, float64(memoryDeviation*float64(m.Total)))
}

// BytesPerParam returns the bytes that a rank which shards nothing keeps of a parameter, rounded: weights, gradients,
// master copy and the optimizer's moments, as Holds counts them.
func (e *Engine) BytesPerParam(p *ir.Plan, r ir.Recipe) int {
	const params = 1 << 10 // so that fractions of a byte count
	prec := p.Precision
	m := e.holdsState(costmodel.Memory{Params: int64(params * prec.Params.Size()),
		Grads:     int64(params * prec.Grads.Size()),
		Optimizer: int64(params * (prec.MasterSize() + r.Moments()*prec.Moments.Size()))}, p)
	return int((m.Params + m.Grads + m.Optimizer + params/2) / params)
}

// InFlight returns how many passes of each of a stage's chunks have saved activations at most, given the numbers that
// planc's own buffers would hold. Other runtimes free activations after use, so that the chunks of a stage share
// memory.
func (e *Engine) InFlight(plan *ir.Plan, stage int, buffers []int) []int {
	if e.Own || plan.VPP == 1 || plan.Schedule != "interleaved" {
		return buffers
	}
	peak := min(2*(plan.PP-stage-1)+(plan.VPP-1)*plan.PP+1, plan.MicroBatches*plan.VPP)
	out, sum := slices.Clone(buffers), 0
	for _, n := range out {
		sum += n
	}
	for ; sum > peak; sum-- {
		largest := len(out) - 1
		for i := range out {
			if out[i] > out[largest] {
				largest = i
			}
		}
		out[largest]--
	}
	return out
}
