package engines

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Run holds the inputs of a prediction.
type Run struct {
	Time          costmodel.Time
	Memory        costmodel.Memory
	Tokens        int     // per step, global
	ModelFlops    float64 // per step, global: three times the forward matmuls and attention of the unsharded model
	Formula       string  // how ModelFlops are counted
	HardwareFlops float64 // per step and rank: matmuls and attention that it executes, averaged over the stages
	Ranks         int
	Precision     ir.Precision
	GEMM          string // type of the matmuls; "": Precision.Compute
	PP            int    // pipeline stages
	Experts       bool   // the model has experts
}

// Predict computes the prediction of a run under the engine.
func (e *Engine) Predict(c *costmodel.Cluster, r Run) costmodel.Predict {
	gemm := r.GEMM
	if gemm == "" {
		gemm = costmodel.ComputeName(r.Precision.Compute)
	}
	dev, _ := c.DeviceOf(&costmodel.PlancKernels, gemm)
	t, step := r.Time.Rounded()
	off := ErrorBarOf(e, c, gemm, r.PP, r.Experts, step).Error
	perGPU := r.ModelFlops / float64(r.Ranks) / float64(step)
	tokens := float64(r.Tokens) / float64(step)
	return costmodel.Predict{
		StepS: step, StepSLow: (step * costmodel.Seconds(1-off)).Rounded(),
		StepSHigh:  (step * costmodel.Seconds(1+off)).Rounded(),
		TokensPerS: costmodel.SixDigits(tokens), TokensPerSGPU: costmodel.SixDigits(tokens / float64(r.Ranks)),
		ModelTFLOPS:    costmodel.SixDigits(perGPU / 1e12),
		HardwareTFLOPS: costmodel.SixDigits(r.HardwareFlops / float64(step) / 1e12),
		MFU:            costmodel.SixDigits(perGPU / float64(dev.Peak)), FlopsFormula: r.Formula,
		BytesPerParam: r.Precision.BytesPerParam(), FitProbability: e.FitProbability(r.Memory, c.GPU.Memory()),
		Time: t, MemoryBytes: r.Memory,
	}
}
