package costmodel

// Kernels describes the kernels of a runtime: their rates relative to those of a GPU's generation, and the times in
// addition to their work. Package engines lists the runtimes.
type Kernels struct {
	Own       bool    // ops are those of planc's programs; otherwise those of the transformer of package engines
	Matrix    float64 // fraction of the GPU's sustained rate that a layer's matmuls reach
	Vendor    bool    // fused attention is the GPU vendor's, instead of FlashAttention-2
	Attention float64 // fraction of the published rate of fused attention
	Memory    float64 // fraction of the memory bandwidth of streaming kernels
	// FP8 operands have a scale per tile along their depth, which costs as much as [MXFP8]; otherwise one scale per
	// tensor
	TileScaled bool
	Launch     Seconds // device time to start and drain a kernel
	Host       Seconds // host time per kernel: a pass is not shorter than the sum over its kernels
	Pass       Seconds // host time per micro-batch: schedule, data, loss
	Step       Seconds // time per step: learning rate, logging, loss scale
}

// PlancKernels are planc's own kernels. On a CPU their rates are measured and in cpu.go. On GPUs they have the rates of
// Megatron's, the most comparable ones, because planc's own kernels are not measured.
var PlancKernels = Kernels{Own: true, Matrix: 1, Vendor: true, Attention: 0.76, Memory: 1, Launch: 3e-6, Step: 200e-6}
