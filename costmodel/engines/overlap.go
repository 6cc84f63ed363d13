package engines

import "github.com/planc-dev/planc/costmodel"

// Contends returns the cost of the engine's collectives for compute that runs concurrently. On a CPU collectives have
// cores of their own. Parameters and gradients that are transferred during each pass, as with ZeRO 2 and 3, may cost
// more than transfers once per step.
func (e *Engine) Contends(c *costmodel.Cluster, zero int) costmodel.Contention {
	switch {
	case c.IsCPU():
		return costmodel.Contention{}
	case zero >= 2 && e.Sharded.Slows > 0:
		return e.Sharded
	}
	return costmodel.Contention{Slows: e.Interfere, Gain: e.Sharded.Gain}
}

// SetAhead sets how a step's gathers of updated parameters overlap the next step's first forward pass. For planc, the
// buckets of the price are those that the compiled program gathers, so that each layer's wait is known.
func (e *Engine) SetAhead(s *costmodel.Step) {
	s.Ahead, s.ByLayer = e.Ahead && !e.Own, e.Ahead && e.Own
}

// Upper bounds of the gain of overlap. Lee et al., "Characterizing Compute-Communication Overlap in GPU-Accelerated
// Distributed Deep Learning" (arXiv 2507.03114, 2025), measured GPT and LLaMA under FSDP and pipelines on A100, H100,
// MI210 and MI250. Overlap slowed compute by 18.9 % on average; a step in sequence took 10.2 % longer on average and
// 26.6 % at most. Larger clusters have larger gains. Among the published runs of docs/validation.md whose ZeRO traffic
// would take more than a fifth of the compute time, the largest gain is 1.64 for FSDP (LLaMA 65B on 2,048 A100) and
// 1.96 for Megatron-FSDP (Qwen3 235B on 256 H100).
const (
	studiedGain  = 1.266
	fsdpGain     = 1.64
	megatronGain = 1.96
)

// fsdpSlows is the slowdown of compute by FSDP's collectives; fitted (tools/validate, 2026-11-22). The study has 0.189.
const fsdpSlows = 0.2
