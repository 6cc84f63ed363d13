package costmodel

import (
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Engine is a runtime as the model sees it: what truly differs between runtimes on the same hardware. Every
// constant is one for all models, plans and GPUs. Those marked "fitted" come out of the fit over published runs that
// docs/validation.md reports, of groups of rows that are no part of the held-out sources; the others are what the
// engine's source or paper says.
type Engine struct {
	Name string
	Doc  string
	Like string // engine whose measured runs stand for it, as it has that engine's constants; "": its own do

	// Kernels.
	Own         bool    // ops are those of planc's programs; else those of block.go's transformer
	Matrix      float64 // of the rate that the GPU sustains: what a layer's matmuls reach
	Vendor      bool    // fused attention is the GPU vendor's; else FlashAttention-2
	Attention   float64 // of its published rate
	Memory      float64 // of the memory rate of streaming kernels
	Elementwise float64 // traffic of element-wise ops, over that of well fused kernels
	FloatLogits bool    // logits are widened and the loss computed op by op
	Unfused     bool    // attention scores go through memory
	// gradients of weights are added to their sums by kernels of their own, after each micro-batch; else by the matmul
	SeparateSums bool
	// selective recomputation keeps every other matmul's output and makes the rest again; else scores alone
	Outputs bool
	Launch  Seconds // a kernel's start and drain, on the device
	Host    Seconds // the host's time for a kernel: a pass takes no less than its kernels' sum
	// of Host, for a kernel that a library issues in a loop of its own and not an op of PyTorch's, as each expert's
	// products and casts (Transformer Engine's GroupedLinear)
	Looped float64
	Pass   Seconds // the host's for a micro-batch: schedule, data, loss
	Step   Seconds // a step's own time: learning rate, logging, loss scale
	// each expert's products are kernels of their own, and so are casts to 8 bits with a scale a block; else one does
	// all
	PerExpert    bool
	OpByOp       bool // the router's choice and rotary positions are PyTorch's ops one by one; else fused kernels
	FusedExperts bool // an expert's activation and casts are parts of its products' kernels
	// columns of the classifier's products on a rank of tp are priced as a multiple of this; memory, the embedding and
	// traffic of gradients are of the vocabulary as it is; 0: no column is added
	PadVocab        int
	SplitsExperts   bool // backward passes of layers with experts may be two
	RecomputesUp    bool // of latent attention what widens the narrow streams is recomputed
	Even            bool // layers are split evenly over chunks, unless the job gives stage_layers
	RecomputesNorms bool // norms are recomputed, and their inputs alone are saved

	// FP8 operands have a scale for each tile along their depth, which costs what [MXFP8] does; else one a tensor
	TileScaled bool

	// the MLP's and experts' activation is recomputed, and its inputs are saved as 8-bit operands are
	RecomputesActivation bool
	Graphed              Graphed // what the host issues at once, as CUDA graphs: up to this

	// Communication.
	Overlap  [2]bool // data-parallel traffic runs beside compute: with ZeRO 0, and above
	Ahead    bool    // parameters are gathered beside the next step's first forward pass
	HiddenTP float64 // part of tensor-parallel collectives that runs beside matmuls, on sm_90 and later
	// part of what moves tokens to experts and back that may overlap another micro-batch's compute; the function's own
	// time bounds it
	HiddenEP                 float64
	SlowsEP                  float64 // by how much compute is slower meanwhile
	Blocking                 bool    // sends to other stages are waited for
	OverlapsInterleavedSends bool    // but for those of an interleaved schedule, which go beside the next pass
	Scattered                bool    // and are split over tensor parallel ranks
	// tokens go to experts, and gradients to what made them, as 8-bit operands where matmuls are in 8 bits; back in 16
	NarrowSent bool
	// tokens go once to each rank and node that has some of their experts, else once for each expert
	Once bool
	// by how much compute is slower while data-parallel traffic runs beside it, which takes multiprocessors and memory
	// bandwidth
	Interfere float64
	Sharded   Contention // of what ZeRO 2 and 3 move with each pass; Slows 0: Interfere

	// Memory. Fitted to what tools showed of whole devices, where the row does not say otherwise.
	Context    Bytes   // context and libraries of a rank
	Group      Bytes   // buffers of a communicator: one of each axis that has several ranks
	Slack      float64 // allocator: what is reserved and not in use, a part of activations and temporaries
	ShardGrads float64 // f32 gradients of a rank's shard at the update, a part of the optimizer's bytes
	SumsWide   bool    // gradients of bf16 are summed in f32 beside the 16-bit ones
	// 16-bit gradients that are not sharded are summed in f32, in their place (FSDP2's unsharded_accumulated_grad;
	// DDP's are of f32 weights)
	WholeWide bool
	Copies    int          // of parameters and their gradients with a pipeline; 0 is 1
	Bytes16   ir.Precision // types of state with 16-bit compute; its Compute and Params follow the job's
}

// Graphed is which kernels take no time of the host, since graphs hold them.
type Graphed uint8

// What graphs hold.
const (
	NotGraphed    Graphed = iota
	GraphedRouter         // the router and the choice
	GraphedDense          // that, attention and norms: all but the experts
	GraphedStep           // everything
)

// PlancEngine is planc's own: on a CPU what its kernels were measured at. On GPUs its constants are those of the best
// comparable engine, Megatron's, and nothing was measured on planc's own kernels.
var PlancEngine = &Engine{Name: "planc", Doc: "planc's own binaries", Like: "megatron", Own: true, Matrix: 1,
	Vendor: true, Attention: 0.76, Memory: 1, Elementwise: 1,
	Launch: 3e-6, Step: 200e-6, Overlap: [2]bool{true, true}, Interfere: 0.107,
	Sharded: Contention{fsdpSlows, studiedGain}}

// Engines are those that can be priced, planc's first. PadVocab is Megatron-LM's --make-vocab-size-divisible-by, as
// nobody sets it. Matrix, Attention, Elementwise, Host, Pass, Step and Interfere are fitted (tools/validate,
// 2026-11-22).
var Engines = []*Engine{
	PlancEngine,
	megatron,
	{Name: "deepspeed", Doc: "Megatron-DeepSpeed",
		Matrix: 0.822, Attention: 1.03, Memory: 1, Elementwise: 0.98, FloatLogits: true, PadVocab: 128, Launch: 2e-6,
		Host: 53e-6, Pass: 1.8e-3, Step: 9.6e-3,
		Blocking: true, Interfere: 0.1,
		Context: 2 << 30, Group: 1600 << 20, Slack: 0.08, ShardGrads: 1.0 / 3, SumsWide: true, Bytes16: mixed(ir.F16)},
	{Name: "fsdp", Doc: "PyTorch DDP, FSDP and FSDP2",
		Matrix: 1.008, Attention: 0.724, Memory: 1, Elementwise: 2.56, FloatLogits: true, Outputs: true, Launch: 2e-6,
		Host: 25e-6, Pass: 1.96e-3, Step: 10.2e-3,
		Overlap: [2]bool{true, true}, Interfere: fsdpSlows, Sharded: Contention{Gain: fsdpGain},
		Context: 1536 << 20, Group: 700 << 20, Slack: 0.05, WholeWide: true, Bytes16: mixed(ir.F16)},
	megatronFSDP(),
	haiEngine,
}

// megatron has a row of its own, since others have its constants. It is what its users mean by 3D parallelism: ZeRO up
// to 1.
var megatron = &Engine{Name: "megatron", Doc: "Megatron-LM, Megatron-Core and NeMo",
	Matrix: 1, Vendor: true, Attention: 0.76, Memory: 1, Elementwise: 1.03, FloatLogits: true, PadVocab: 128,
	Even: true, Launch: 2e-6, Host: 76.8e-6, Looped: 0.496, Pass: 1.57e-3, Step: 5.1e-3,
	Overlap: [2]bool{false, true}, Ahead: true, HiddenTP: 0.5, Blocking: true, OverlapsInterleavedSends: true, Scattered: true,
	Once: true, PerExpert: true, Interfere: 0.107, Sharded: Contention{Gain: megatronGain},
	Context: 1536 << 20, Group: 700 << 20, Slack: 0.05, Bytes16: mixed(ir.F32)}

// megatronFSDP is Megatron-LM with --use-megatron-fsdp, by Megatron's constants: its kernels are the same, and none of
// its runs is a measured row. Parameters are gathered as they are needed, so that nothing is left for the next step's
// first pass.
func megatronFSDP() *Engine {
	e := *megatron
	e.Name, e.Doc, e.Like = "megatron-fsdp", "Megatron-LM with Megatron-FSDP", megatron.Name
	e.Overlap, e.Ahead = [2]bool{true, true}, false
	return &e
}

// mixed is 16-bit weights with f32 master copy and moments; F16 stands for the compute type. On the network gradients
// have 16 bits: Megatron's fp16 runs reduce what backward made, and its recipes for bf16 set grad-reduce-in-bf16.
func mixed(grads ir.Elem) ir.Precision {
	return ir.Precision{Grads: grads, Reduce: ir.F16, Master: ir.F32, Moments: ir.F32}
}

// EngineOf is an engine by its name, nil if there is none.
func EngineOf(name string) *Engine {
	for _, e := range Engines {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// State is a precision as the engine keeps it: with 16-bit weights its own types, whatever the preset says. Sums of
// gradients in f32 go with bf16 alone (Megatron-LM's arguments.py: --bf16 sets accumulate_allreduce_grads_in_fp32).
func (e *Engine) State(p ir.Precision) ir.Precision {
	p.FP8 = p.FP8 && e.Own
	if e.Own || !p.Params.Narrow() {
		return p
	}
	q := e.Bytes16 // its products in 8 bits are its layers', not the program's
	q.Compute, q.Params = p.Compute, p.Params
	if q.Grads.Narrow() || p.Params == ir.F16 {
		q.Grads = p.Params
	}
	if q.Reduce.Narrow() {
		q.Reduce = p.Params
	}
	return q
}

// Sums are the bytes of an element of the weights' gradients as micro-batches are summed, under State's precision.
func (e *Engine) Sums(state ir.Precision) int {
	if e.SumsWide && state.Grads == ir.BF16 {
		return ir.F32.Size()
	}
	return state.Grads.Size()
}

// ExposedTP is the part of tensor parallel collectives that compute waits for. They run beside matmuls, in chunks, on
// GPUs of sm_90 and later alone.
func (e *Engine) ExposedTP(c *Cluster) float64 {
	if c.IsCPU() || c.GPU.Arch < "sm_90" && !strings.HasPrefix(c.GPU.Arch, "sm_1") {
		return 1
	}
	return 1 - e.HiddenTP
}

// Waits tells whether a pass of a plan ends when what it sends to the next stage has gone. Megatron-LM sends beside the
// next pass where the schedule is interleaved (commit f9283c5a of May 2023; the default since 4eeff55d of that
// October).
func (e *Engine) Waits(p *ir.Plan) bool {
	return e.Blocking && !(e.OverlapsInterleavedSends && p.VPP > 1)
}

// Holds is what a rank needs under the engine, of what its plan's arena would need.
func (e *Engine) Holds(m Memory, p *ir.Plan) Memory {
	if e.Own {
		return m
	}
	m = e.holdsState(m, p)
	groups := 0
	for _, n := range []int{p.DP, p.TP, p.PP} {
		groups += min(1, n-1)
	}
	m.Overhead = int64(e.Context) + int64(groups)*int64(e.Group) +
		int64(e.Slack*float64(m.Activations+m.Workspace+m.Comm))
	m.Total = 0
	for _, part := range MemoryParts {
		m.Total += m.Part(part)
	}
	return m
}

// holdsState is Holds of parameters, gradients and optimizer alone.
func (e *Engine) holdsState(m Memory, p *ir.Plan) Memory {
	if e.Own {
		return m
	}
	if e.SumsWide && p.Precision.Grads == ir.BF16 {
		m.Grads += 2 * m.Grads // four bytes beside two
	}
	if e.WholeWide && p.Zero < 2 && p.Precision.Grads.Narrow() {
		m.Grads *= 2
	}
	if e.Copies > 1 && p.PP > 1 {
		m.Params, m.Grads = m.Params*int64(e.Copies), m.Grads*int64(e.Copies)
	}
	m.Optimizer += int64(e.ShardGrads * float64(m.Optimizer))
	return m
}

// BytesPerParam returns the bytes that a rank which shards nothing keeps of a parameter, rounded: weights, gradients,
// master copy and the optimizer's moments, as Holds counts them.
func (e *Engine) BytesPerParam(p *ir.Plan, r ir.Recipe) int {
	const params = 1 << 10 // so that a part of a byte counts
	prec := p.Precision
	m := e.holdsState(Memory{Params: int64(params * prec.Params.Size()), Grads: int64(params * prec.Grads.Size()),
		Optimizer: int64(params * (prec.MasterSize() + r.Moments()*prec.Moments.Size()))}, p)
	return int((m.Params + m.Grads + m.Optimizer + params/2) / params)
}

// InFlight is how many passes of a stage's chunks keep activations at a time, at most, of so many that planc's own
// buffers would hold: other runtimes free what they have used, so that chunks of a stage share.
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
		most := len(out) - 1
		for i := range out {
			if out[i] > out[most] {
				most = i
			}
		}
		out[most]--
	}
	return out
}
