package engines

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// PlanState returns the types of state of a plan at a stage of ZeRO. state is what [Engine.State] returned for the job.
// PyTorch's FSDP and DDP keep different ones. FSDP gathers 16-bit copies of FP32 parameters. DDP wraps the module as it
// is: parameters, gradients and the optimizer's moments have one type, which is the one that the optimizer updates.
// Under mixed precision that is FP32, and autocast casts the weights for each pass. The gradients are all-reduced in
// that type too, unless the job pins another one.
// Sources: PyTorch 2.9, nn/parallel/distributed.py; optim/adam.py: zeros_like(p); torch.amp's documentation: the model
// is not converted to a 16-bit type.
func (e *Engine) PlanState(state ir.Precision, p *ir.Plan, zero int) ir.Precision {
	if !e.isPlain(p, zero) || !state.Params.Narrow() {
		return state
	}
	t := state.Master
	return ir.Precision{Compute: state.Compute, Params: t, Grads: t, Reduce: t, Master: t, Moments: t}
}

// isPlain reports whether a plan at a stage of ZeRO trains without FSDP: as one device, or as replicas under DDP. One
// replica of several devices is wrapped with FSDP, which gives it mixed precision.
func (e *Engine) isPlain(p *ir.Plan, zero int) bool {
	return e.PlainReplicas && zero == 0 && (p.Replicas() > 1 || p.Ranks() == 1)
}

// PlainCosts are what a plan without FSDP has in addition to its state, in bytes per parameter.
type PlainCosts struct {
	Buckets int // copies of the gradients in DDP's buckets
	Casts   int // 16-bit copies of the weights, which the backward pass reads
	// traffic of a device's memory for each micro-batch's passes, and once per step
	Forward, Backward, Step int
}

// PlainCosts returns the additional costs of a plan at a stage of ZeRO; prec is what [Engine.PlanState] returned.
//
// DDP copies gradients into buckets, all-reduces the buckets and copies the results back. Its default
// gradient_as_bucket_view=False keeps both copies: with True "the saved memory size will be equal to the total
// gradients size" (PyTorch 2.9, documentation of DistributedDataParallel). Autocast casts a weight once per forward
// pass, and the graph of the pass holds the copy for the backward pass, which casts the weight's gradient back and adds
// it to the others (PyTorch, aten/src/ATen/autocast_mode.cpp: cached_cast).
//
// A job whose gradients are reduced in a narrower type than they have is FSDP 1 with NO_SHARD. That has no buckets and
// frees each module's casts after use (PyTorch 2.9, distributed/fsdp/_runtime_utils.py: _reduce_grad_no_shard).
func (e *Engine) PlainCosts(prec *ir.Precision, p *ir.Plan, zero int) (c PlainCosts) {
	if !e.isPlain(p, zero) {
		return c
	}
	param, narrow := prec.Params.Size(), prec.Compute.Size()
	isCast, isDDP := narrow < param, prec.Reduce == prec.Grads
	if isCast {
		c.Forward, c.Backward = param+narrow, narrow+prec.Grads.Size()
	}
	if isCast && isDDP {
		c.Casts = narrow
	}
	if isDDP && p.Replicas() > 1 {
		c.Buckets, c.Step = prec.Grads.Size(), 4*prec.Grads.Size()
	}
	if p.MicroBatches > 1 { // the first micro-batch's gradients are kept, and the others are added
		c.Backward += 3 * prec.Grads.Size() * (p.MicroBatches - 1) / p.MicroBatches
	}
	return c
}

// Memory returns the bytes of buckets and casts for a number of parameters.
func (c *PlainCosts) Memory(params int) int { return (c.Buckets + c.Casts) * params }

// Times returns the time of the additional traffic of a device with a number of parameters.
func (c *PlainCosts) Times(d *costmodel.Device, params int) (forward, backward costmodel.Seconds) {
	return plainTime(d, c.Forward*params), plainTime(d, c.Backward*params)
}

// StepTime returns the time in which gradients are copied to buckets and back.
func (c *PlainCosts) StepTime(d *costmodel.Device, params int) costmodel.Seconds {
	return plainTime(d, c.Step*params)
}

// plainTime returns the time of memory traffic, 0 if there is none.
func plainTime(d *costmodel.Device, bytes int) costmodel.Seconds {
	if bytes == 0 {
		return 0
	}
	return d.StreamTime(costmodel.Bytes(bytes))
}
