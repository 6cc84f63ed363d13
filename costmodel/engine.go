package costmodel

import (
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

	// Kernels.
	Own         bool    // ops are those of planc's programs; else those of block.go's transformer
	Matrix      float64 // of the rate that the GPU sustains: what a layer's matmuls reach
	Vendor      bool    // fused attention is the GPU vendor's; else FlashAttention-2
	Attention   float64 // of its published rate
	Memory      float64 // of the memory rate of streaming kernels
	Elementwise float64 // traffic of element-wise ops, over that of well fused kernels
	FloatLogits bool    // logits are widened and the loss computed op by op
	Unfused     bool    // attention scores go through memory
	Outputs     bool    // selective recomputation keeps every other matmul's output and makes the rest again; else scores alone
	Launch      Seconds // a kernel's start and drain, on the device
	Host        Seconds // the host's time for a kernel: a pass takes no less than its kernels' sum
	Pass        Seconds // the host's for a micro-batch: schedule, data, loss
	Step        Seconds // a step's own time: learning rate, logging, loss scale

	// Communication.
	Overlap   [2]float64 // data-parallel traffic runs beside compute: with ZeRO 0, and above; 0 is not at all
	Ahead     bool       // parameters are gathered beside the next step's first forward pass
	HiddenTP  float64    // part of tensor-parallel collectives that runs beside matmuls, on sm_90 and later
	Blocking  bool       // sends to other stages are waited for
	Scattered bool       // and are split over tensor parallel ranks
	Interfere float64    // by how much passes are slower while data-parallel traffic runs beside them

	// Memory.
	Context Bytes        // context, libraries and communicators of a rank
	Slack   float64      // allocator: what is reserved and not in use, a part of activations and temporaries
	Bytes16 ir.Precision // types of state with 16-bit compute; its Compute and Params follow the job's
}

// PlancEngine is planc's own: on a CPU what its kernels were measured at. On GPUs its constants are those of the best
// comparable engine, Megatron's, and nothing was measured on planc's own kernels.
var PlancEngine = &Engine{Name: "planc", Doc: "planc's own binaries", Own: true, Matrix: 1, Vendor: true, Attention: 1, Memory: 1, Elementwise: 1,
	Launch: 3e-6, Step: 200e-6, Overlap: [2]float64{1, 1}, Context: 550 << 20}

// Engines are those that can be priced, planc's first.
var Engines = []*Engine{
	PlancEngine,
	{Name: "megatron", Doc: "Megatron-LM, Megatron-Core and NeMo", Matrix: 1, Vendor: true, Attention: 1, Memory: 1, Elementwise: 1.2, FloatLogits: true,
		Launch: 2e-6, Host: 40e-6, Pass: 2e-3, Step: 5e-3, Overlap: [2]float64{0, 1}, Ahead: true, HiddenTP: 0.5, Blocking: true, Scattered: true, Interfere: 0.1,
		Context: 3 << 30, Slack: 0.15, Bytes16: mixed(ir.F32)},
	{Name: "deepspeed", Doc: "Megatron-DeepSpeed", Matrix: 1, Attention: 1, Memory: 1, Elementwise: 1.2, FloatLogits: true,
		Launch: 2e-6, Host: 40e-6, Pass: 3e-3, Step: 20e-3, Blocking: true, Interfere: 0.1,
		Context: 4 << 30, Slack: 0.3, Bytes16: mixed(ir.F16)},
	{Name: "fsdp", Doc: "PyTorch DDP, FSDP and FSDP2", Matrix: 1, Attention: 0.8, Memory: 1, Elementwise: 1.8, FloatLogits: true, Outputs: true,
		Launch: 2e-6, Host: 25e-6, Pass: 2e-3, Step: 10e-3, Overlap: [2]float64{1, 1}, Interfere: 0.1, Context: 2 << 30, Slack: 0.1, Bytes16: mixed(ir.F16)},
}

// mixed is 16-bit weights with f32 master copy and moments; gradients of F16 stand for those of the compute type.
func mixed(grads ir.Elem) ir.Precision {
	return ir.Precision{Grads: grads, Reduce: grads, Master: ir.F32, Moments: ir.F32}
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

// State is a precision as the engine keeps it: with 16-bit weights its own types, whatever the preset says.
func (e *Engine) State(p ir.Precision) ir.Precision {
	if e.Own || !p.Params.Narrow() {
		return p
	}
	q := e.Bytes16
	q.Compute, q.Params = p.Compute, p.Params
	if q.Grads.Narrow() {
		q.Grads, q.Reduce = p.Params, p.Params
	}
	return q
}

// ExposedTP is the part of tensor parallel collectives that compute waits for. They run beside matmuls, in chunks, on GPUs
// of sm_90 and later alone.
func (e *Engine) ExposedTP(c *Cluster) float64 {
	if c.IsCPU() || c.GPU.Arch < "sm_90" && !strings.HasPrefix(c.GPU.Arch, "sm_1") {
		return 1
	}
	return 1 - e.HiddenTP
}
