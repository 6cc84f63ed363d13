package engines

import (
	"encoding/json"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Predictions are consistent: rates follow from the step time, and MFU from the device's peak.
func TestPredict(t *testing.T) {
	c := &costmodel.Cluster{GPU: costmodel.GPU{Arch: "sm_80", MemoryGiB: 80,
		PeakTFLOPS: map[string]float64{"bf16": 1000}}}
	m := costmodel.Memory{Total: 18 << 30}
	p := PlancEngine.Predict(c, Run{Time: costmodel.Time{Compute: 1.9, DPComm: 0.1}, Memory: m,
		Tokens: 1 << 20, ModelFlops: 8e15,
		HardwareFlops: 1.2e15, Ranks: 8,
		Precision: ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32,
			Moments: ir.F32}})
	if p.StepS != 2 || p.TokensPerS != 524288 || p.TokensPerSGPU != 65536 || p.MFU != 0.5 || p.HardwareTFLOPS != 600 ||
		p.BytesPerParam != 18 || p.FitProbability != 1 {
		t.Errorf("predict %+v", p)
	}
	if text, err := json.Marshal(p); err != nil || len(text) == 0 {
		t.Error(err)
	}
}
