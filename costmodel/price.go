package costmodel

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// CostModel is the version of the predictions, which locks record. It is raised whenever a prediction can change.
const CostModel = 9

// Predict is the prediction for a plan: the "predict" object of contract.md. Times have six significant digits; the
// parts of Time add up to StepS.
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

// SixDigits rounds to six significant decimal digits, so that all machines agree.
func SixDigits(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 5, 64), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	return r
}

// Rounded returns the duration with six significant digits.
func (s Seconds) Rounded() Seconds { return Seconds(SixDigits(float64(s))) }

// Rounded rounds every part to the sixth significant digit of the total and returns their sum, so that the printed
// parts add up exactly to the printed total.
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

// decimal returns n·10^exp.
func decimal(n int64, exp int) Seconds {
	v, err := strconv.ParseFloat(fmt.Sprintf("%de%d", n, exp), 64)
	if err != nil {
		panic("costmodel: " + err.Error())
	}
	return Seconds(v)
}
