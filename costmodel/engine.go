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
	Matrix    float64 // of the best matmul found on the GPU: what a layer's matmuls reach
	Attention float64 // of fused attention's rate on the GPU
	Memory    float64 // of the memory rate of streaming kernels
	Launch    Seconds // a kernel's start and drain, on the device
	Host      Seconds // between two kernels at least: the host issues them one after the other
	Step      Seconds // a step's own time: data, learning rate, loss, logging
	Own       bool    // ops are those of planc's programs; else those of block.go's transformer

	Elementwise float64 // traffic of element-wise ops, over that of well fused kernels
	FloatLogits bool    // logits are widened and the loss computed op by op
	Unfused     bool    // attention scores go through memory

	// Communication.
	Overlap     [2]float64 // part of data-parallel traffic that runs beside compute: with ZeRO 0, and above
	HiddenTP    float64    // part of tensor-parallel collectives that runs beside matmuls
	Blocking    bool       // sends to other stages are waited for
	Interfere   float64    // by how much compute slows down while collectives run beside it
	Scattered   bool       // messages between stages are split over tensor parallel ranks
	GradTraffic ir.Elem    // type of gradients on the network; 0: the plan's

	// Memory.
	Context Bytes        // context, libraries, communicators of one rank
	Slack   float64      // allocator: reserved and not in use, a part of activations and temporaries
	Bytes16 ir.Precision // types of state with 16-bit compute; its Compute and Params follow the job's
}

// PlancEngine is planc's own: on a CPU what its kernels were measured at. On GPUs its constants are those of the best
// comparable engine, Megatron's, and nothing was measured on planc's own kernels.
var PlancEngine = &Engine{Name: "planc", Doc: "planc's own binaries", Own: true, Matrix: 0.93, Attention: 1, Memory: 1, Elementwise: 1,
	Launch: 3e-6, Step: 200e-6, Overlap: [2]float64{1, 1}, Context: 550 << 20}

// Engines are those that can be priced, planc's first.
var Engines = []*Engine{
	PlancEngine,
	{Name: "megatron", Doc: "Megatron-LM, Megatron-Core and NeMo", Matrix: 0.93, Attention: 1, Memory: 1, Elementwise: 1, FloatLogits: true,
		Launch: 2e-6, Host: 6e-6, Step: 5e-3, Overlap: [2]float64{0, 1}, HiddenTP: 0, Blocking: true, Interfere: 0.1, Scattered: true,
		Context: 2 << 30, Slack: 0.1, Bytes16: mixed(ir.F32)},
	{Name: "deepspeed", Doc: "Megatron-DeepSpeed", Matrix: 0.93, Attention: 1, Memory: 1, Elementwise: 1, FloatLogits: true,
		Launch: 2e-6, Host: 6e-6, Step: 10e-3, Overlap: [2]float64{0, 0.5}, Blocking: true, Interfere: 0.1,
		Context: 3 << 30, Slack: 0.1, Bytes16: mixed(ir.F16)},
	{Name: "fsdp", Doc: "PyTorch DDP, FSDP and FSDP2", Matrix: 0.93, Attention: 1, Memory: 1, Elementwise: 1.5, FloatLogits: true,
		Launch: 2e-6, Host: 6e-6, Step: 5e-3, Overlap: [2]float64{1, 1}, Interfere: 0.1, Context: 2 << 30, Slack: 0.1, Bytes16: mixed(ir.F16)},
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
