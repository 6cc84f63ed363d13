package costmodel

// Contention is what collectives cost compute that runs concurrently.
type Contention struct {
	// by how much compute is slower while they run: they take multiprocessors, memory bandwidth and power from it
	Slows float64
	Gain  float64 // how many times as long both take one after the other as concurrently, at most; 0: nothing bounds it
}

// Added is what collectives of so many seconds add to a pass that computes concurrently; waits is how long compute
// waits for them under the schedule. The sum of work and the result grows with each argument.
func (c Contention) Added(work, moved, waits Seconds) Seconds {
	added := waits + Seconds(c.Slows)*min(moved, work)
	if c.Gain > 0 {
		added = max(added, (work+moved)/Seconds(c.Gain)-work)
	}
	return added
}

// Contends returns what the engine's collectives cost compute that runs concurrently. On a CPU they have cores of their
// own. Parameters and gradients that move with each pass, as ZeRO 2 and 3 have it, may cost more than what moves once a
// step.
func (e *Engine) Contends(c *Cluster, zero int) Contention {
	switch {
	case c.IsCPU():
		return Contention{}
	case zero >= 2 && e.Sharded.Slows > 0:
		return e.Sharded
	}
	return Contention{e.Interfere, e.Sharded.Gain}
}

// The bounds of what overlap gains. Lee et al., "Characterizing Compute-Communication Overlap in GPU-Accelerated
// Distributed Deep Learning" (arXiv 2507.03114, 2025), measured GPT and LLaMA under FSDP and pipelines on A100, H100,
// MI210 and MI250: overlap made compute 18.9 % slower in the mean, and a step in sequence took 10.2 % longer in the
// mean and 26.6 % at most. Larger clusters have larger gains: of the published runs of docs/validation.md whose ZeRO
// traffic would take more than a fifth of the compute's time, the largest gain is 1.64 for FSDP (LLaMA 65B on 2,048
// A100) and 1.96 for Megatron-FSDP (Qwen3 235B on 256 H100).
const (
	studiedGain  = 1.266
	fsdpGain     = 1.64
	megatronGain = 1.96
)

// fsdpSlows is by how much FSDP's collectives slow compute; fitted (tools/validate, 2026-11-22), beside the study's
// 0.189.
const fsdpSlows = 0.2
