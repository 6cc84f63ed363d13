package measure

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/runtime/cpu"
)

// Measurement is the result of Run. All GPUs of the machine work at once, and each figure is that of
// the slowest. The program that planc calibrate builds prints it as one JSON object.
type Measurement struct {
	CUDA     string   `json:"cuda"`      // newest version that the driver supports
	BLAS     string   `json:"cublas_lt"` // version
	NCCL     string   `json:"nccl"`      // version; "" with one GPU or without NCCL
	GPUs     []string `json:"gpus"`      // names
	Points   []Point  `json:"points"`
	Left     []string `json:"left"`     // what was not measured, and why
	Duration float64  `json:"duration"` // seconds
}

// What a [Point] measures.
const (
	OfGEMM          = "product"
	OfFP8           = "product_fp8" // of operands that are in FP8 already
	OfAttention     = "attention"
	OfAttentionGrad = "attention_grad"
	OfCopy          = "copy"     // within a GPU's memory
	OfUpload        = "upload"   // from the host's pinned memory
	OfDownload      = "download" // to the host's pinned memory
	OfLaunch        = "launch"   // of a kernel that does nothing
	OfReplay        = "replay"   // of such a kernel in a graph
	OfAllReduce     = "all_reduce"
	OfAllGather     = "all_gather"
	OfReduceScatter = "reduce_scatter"
	OfAllToAll      = "all_to_all"
	OfSend          = "send"
)

// Point is one measured duration.
type Point struct {
	Of   string `json:"of"`
	Type string `json:"type,omitempty"` // bf16, fp16, tf32, f32, fp8

	// Of a GEMM: M × K by K × N. Of causal attention: M queries and N keys with heads of K numbers; Batch is
	// the number of heads in all sequences.
	M          int    `json:"m,omitempty"`
	N          int    `json:"n,omitempty"`
	K          int    `json:"k,omitempty"`
	Batch      int    `json:"batch,omitempty"`
	Transposed string `json:"turn,omitempty"` // operand of a GEMM that is stored transposed: a, b

	Bytes int64 `json:"bytes,omitempty"` // of a copy; of a collective the operand of a rank, of all_gather the result
	Ranks int   `json:"ranks,omitempty"` // of a collective

	Seconds float64 `json:"seconds"` // median duration of a call
	Spread  float64 `json:"spread"`  // difference of the 90th and the 10th percentile, divided by the median
}

// Flops returns the FLOPs of a GEMM, or of causal attention, which computes half of the scores.
func (p *Point) Flops() float64 {
	n := float64(p.M) * float64(p.N) * float64(p.K) * float64(max(1, p.Batch))
	switch p.Of {
	case OfAttention:
		return 4 * n / 2
	case OfAttentionGrad:
		return 10 * n / 2
	}
	return 2 * n
}

// attentionShape is a batch of sequences with causal attention. Group query heads share each of the heads
// of keys.
type attentionShape struct{ batch, heads, group, seq, dim int }

var attentionShapes = []attentionShape{{1, 1, 1, 64, 64}, {1, 2, 1, 256, 64}, {8, 12, 1, 1024, 64},
	{4, 16, 1, 2048, 128}, {2, 8, 4, 4096, 128}, {1, 8, 4, 8192, 128}}

func (s attentionShape) shape() *cpu.AttentionShape {
	return &cpu.AttentionShape{Batch: s.batch, Seq: s.seq, KSeq: s.seq, Heads: s.heads, Group: s.group, Dim: s.dim,
		VDim: s.dim, Scale: 0.125, Mask: cpu.AttentionMask{Causal: true},
		HeadsAll: s.heads, GroupAll: s.group, SeqAll: s.seq, KSeqAll: s.seq}
}

// FillKernel names a kernel that does almost nothing. It serves to measure launches.
const FillKernel = "fill"

// AttentionShapes returns the shapes of attention that are measured, in bf16. Their sources are
// kernels.Files. This file does not call it, because it is also part of the runtime of CPU programs, which
// contains no kernels.
func AttentionShapes() (shapes []*cpu.AttentionShape) {
	for _, s := range attentionShapes {
		shapes = append(shapes, s.shape())
	}
	return shapes
}

// Text describes a point for people.
func (p *Point) Text() string {
	switch p.Of {
	case OfGEMM, OfFP8:
		turned := map[string]string{"": "", "a": " of weights", "b": " of inputs"}[p.Transposed]
		return fmt.Sprintf("%s %d × %d × %d%s", p.Type, p.M, p.N, p.K, turned)
	case OfAttention:
		return fmt.Sprintf("forward, %d × %d queries, heads of %d", p.Batch, p.M, p.K)
	case OfAttentionGrad:
		return fmt.Sprintf("backward, %d × %d queries, heads of %d", p.Batch, p.M, p.K)
	}
	return strings.ReplaceAll(p.Of, "_", "-")
}
