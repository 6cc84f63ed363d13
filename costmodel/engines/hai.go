package engines

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// haiEngine is DeepSeek's HAI-LLM, as described by the "DeepSeek-V3 Technical Report" (arXiv 2412.19437) and the
// libraries released with it. Nothing is fitted. What the report does not mention is copied from Megatron: the rate of
// attention, the time per micro-batch and step, context and communicators. By sections of the report:
//
//	3.2.1  DualPipe: forward and backward passes of two micro-batches overlap, which hides all-to-alls and sends. Its
//	       bubble, (pp/2-1)(F&B + B - 3W), is within a tenth of that of zb-h1, (pp-1)(F + B - 2W), if B = 2W = 2F. A
//	       rank holds the parameters of two stages. With 120 micro-batches on 16 ranks, 97 to 104 forward passes are
//	       paired with a backward pass (DualPipe's dualpipe.py, steps 4 and 5), on average pairedHAI
//	3.2.2  20 of 132 multiprocessors transfer tokens, which go to at most 4 nodes: once to each node over InfiniBand,
//	       and from there over NVLink
//	3.2.3  norms, MLA's up-projections and SwiGLU are recomputed; no tensor parallelism
//	3.3.2  matmuls in FP8 with a scale per 128 elements (DeepGEMM: one kernel for all experts), moments in BF16,
//	       gradients and the master copy in FP32
//	3.3.3  activations are saved and tokens are dispatched in FP8; they are combined in BF16
var haiEngine = &Engine{Name: "hai-llm", Doc: "DeepSeek's HAI-LLM, as the DeepSeek-V3 report describes it",
	Like: "megatron", Kernels: tileScaled(megatronKernels),
	Blocks: Blocks{Elementwise: 1.03, Looped: 0.496, RecomputesUp: true, RecomputesNorms: true,
		RecomputesActivation: true, SplitsExperts: true},
	Traffic: Traffic{Overlap: [2]bool{true, true}, HiddenTP: 0.5, HiddenEP: pairedHAI, SlowsEP: 20.0 / (132 - 20),
		Once: true, NarrowSent: true, Interfere: 0.107, Sharded: costmodel.Contention{Gain: studiedGain}},
	MemoryUse: MemoryUse{Context: 1536 << 20, Group: 700 << 20, Slack: 0.05, Copies: 2,
		Bytes16: ir.Precision{Grads: ir.F32, Reduce: ir.F16, Master: ir.F32, Moments: ir.BF16}}}

// pairedHAI is the fraction of forward and backward passes that overlap one of another micro-batch.
const pairedHAI = 100.5 / 120

// tileScaled returns kernels whose FP8 operands have a scale per tile.
func tileScaled(k costmodel.Kernels) costmodel.Kernels {
	k.TileScaled = true
	return k
}
