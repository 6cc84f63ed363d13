package costmodel

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// CostModel is raised whenever a prediction can change; locks record it.
const CostModel = 6

// Predict is what planc expects of a plan: the "predict" object of contract.md. Times have six significant
// digits; the parts of Time add up to StepS.
type Predict struct {
	StepS          Seconds `json:"step_s"`
	StepSLow       Seconds `json:"step_s_low"`
	StepSHigh      Seconds `json:"step_s_high"`
	TokensPerS     float64 `json:"tokens_per_s"`
	TokensPerSGPU  float64 `json:"tokens_per_s_per_gpu"`
	ModelTFLOPS    float64 `json:"model_tflops_per_gpu"`
	HardwareTFLOPS float64 `json:"hardware_tflops_per_gpu"`
	MFU            float64 `json:"mfu"`
	FlopsFormula   string  `json:"flops_formula"`
	BytesPerParam  int     `json:"bytes_per_param"`
	FitProbability float64 `json:"fit_probability"`
	Time           Time    `json:"time"`
	MemoryBytes    Memory  `json:"memory_bytes"`
}

// Run is what a prediction is made of.
type Run struct {
	Time          Time
	Memory        Memory
	Tokens        int     // of a step, global
	ModelFlops    float64 // of a step, global: three times the forward matmuls and attention of the unsharded model
	Formula       string  // how they are counted
	HardwareFlops float64 // of a step, one rank: matmuls and attention that it does, in the mean over the stages
	Ranks         int
	Precision     ir.Precision
	GEMM          string  // what matmuls compute in; "": Precision.Compute
	Engine        *Engine // whose runtime; nil: planc's
	PP            int     // pipeline stages
	Experts       bool    // the model has some
}

// Predict puts a prediction together.
func (c *Cluster) Predict(r Run) Predict {
	gemm := r.GEMM
	if gemm == "" {
		gemm = ComputeName(r.Precision.Compute)
	}
	dev, _ := c.DeviceOf(PlancEngine, gemm)
	t, step := r.Time.Rounded()
	engine := r.Engine
	if engine == nil {
		engine = PlancEngine
	}
	e := ErrorBarOf(engine, c, gemm, r.PP, r.Experts, step).Error
	perGPU := r.ModelFlops / float64(r.Ranks) / float64(step)
	tokens := float64(r.Tokens) / float64(step)
	return Predict{
		StepS: step, StepSLow: (step * Seconds(1-e)).Rounded(), StepSHigh: (step * Seconds(1+e)).Rounded(),
		TokensPerS: SixDigits(tokens), TokensPerSGPU: SixDigits(tokens / float64(r.Ranks)),
		ModelTFLOPS: SixDigits(perGPU / 1e12), HardwareTFLOPS: SixDigits(r.HardwareFlops / float64(step) / 1e12),
		MFU: SixDigits(perGPU / float64(dev.Peak)), FlopsFormula: r.Formula,
		BytesPerParam: r.Precision.BytesPerParam(), FitProbability: engine.FitProbability(r.Memory, c.GPU.Memory()),
		Time: t, MemoryBytes: r.Memory,
	}
}

// SixDigits rounds to six significant digits, in decimal, so that machines agree.
func SixDigits(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 5, 64), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	return r
}

// Rounded is the duration to six significant digits.
func (s Seconds) Rounded() Seconds { return Seconds(SixDigits(float64(s))) }

// Rounded rounds every part to the sixth significant digit of the total and returns their sum: so the printed
// parts add up to the printed total exactly.
func (t Time) Rounded() (Time, Seconds) {
	text := strconv.FormatFloat(float64(t.Total()), 'e', 5, 64)
	exp, err := strconv.Atoi(text[strings.IndexByte(text, 'e')+1:])
	if err != nil {
		panic("costmodel: a step takes " + text + " s")
	}
	unit := math.Pow10(5 - exp)
	sum := int64(0)
	for _, p := range t.parts() {
		n := int64(math.Round(float64(*p) * unit))
		sum += n
		*p = decimal(n, exp-5)
	}
	return t, decimal(sum, exp-5)
}

// decimal is n·10^exp.
func decimal(n int64, exp int) Seconds {
	v, err := strconv.ParseFloat(fmt.Sprintf("%de%d", n, exp), 64)
	if err != nil {
		panic("costmodel: " + err.Error())
	}
	return Seconds(v)
}
