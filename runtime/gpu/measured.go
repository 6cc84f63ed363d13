package gpu

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/runtime/cpu"
)

// Measurement is what Measure finds of this machine's GPUs, which all work at once: each figure is the slowest GPU's.
// It is what a program that planc calibrate makes prints, as one JSON object.
type Measurement struct {
	CUDA     string   `json:"cuda"`      // the newest that the driver supports
	BLAS     string   `json:"cublas_lt"` // versions
	NCCL     string   `json:"nccl"`      // "" where there is one GPU, or no NCCL
	GPUs     []string `json:"gpus"`      // names
	Points   []Point  `json:"points"`
	Left     []string `json:"left"`     // what was not measured, and why
	Duration float64  `json:"duration"` // seconds
}

// The things that a [Point] is of.
const (
	OfGEMM          = "product"
	OfFP8           = "product_fp8" // of operands in 8 bits, which are there already
	OfAttention     = "attention"
	OfAttentionGrad = "attention_grad"
	OfCopy          = "copy"     // within a GPU's memory
	OfUpload        = "upload"   // from the host's pinned memory
	OfDownload      = "download" // to it
	OfLaunch        = "launch"   // of a kernel that does nothing, called
	OfReplay        = "replay"   // of one in a graph
	OfAllReduce     = "all_reduce"
	OfAllGather     = "all_gather"
	OfReduceScatter = "reduce_scatter"
	OfAllToAll      = "all_to_all"
	OfSend          = "send"
)

// Point is how long something took.
type Point struct {
	Of   string `json:"of"`
	Type string `json:"type,omitempty"` // bf16, fp16, tf32, f32, fp8

	// Of a product M × K by K × N, and which operands are stored transposed. Of causal attention: M queries, N keys,
	// heads of K numbers, Batch of them in all sequences.
	M     int    `json:"m,omitempty"`
	N     int    `json:"n,omitempty"`
	K     int    `json:"k,omitempty"`
	Batch int    `json:"batch,omitempty"`
	Turn  string `json:"turn,omitempty"` // a, b

	Bytes int64 `json:"bytes,omitempty"` // of a copy; of a collective a rank's operand, of all_gather the result
	Ranks int   `json:"ranks,omitempty"` // of a collective

	Seconds float64 `json:"seconds"` // of a call: the median
	Spread  float64 `json:"spread"`  // between a tenth and nine tenths of the samples, over the median
}

// Flops are a product's, or attention's, of which the keys behind a query are not seen.
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

// attentionShape is a batch of sequences whose heads attend causally, Group of them to the same keys.
type attentionShape struct{ batch, heads, group, seq, dim int }

var attentionShapes = []attentionShape{{1, 1, 1, 64, 64}, {1, 2, 1, 256, 64}, {8, 12, 1, 1024, 64},
	{4, 16, 1, 2048, 128}, {2, 8, 4, 4096, 128}, {1, 8, 4, 8192, 128}}

func (s attentionShape) shape() *cpu.AttentionShape {
	return &cpu.AttentionShape{Batch: s.batch, Seq: s.seq, KSeq: s.seq, Heads: s.heads, Group: s.group, Dim: s.dim,
		VDim: s.dim, Scale: 0.125, Causal: true,
		HeadsAll: s.heads, GroupAll: s.group, SeqAll: s.seq, KSeqAll: s.seq}
}

// FillKernel does next to nothing: it is launched to see what launching takes.
const FillKernel = "fill"

// MeasuredAttention are the shapes of attention that are measured, in bf16. Their sources are kernels.Files, which this
// file does not call: it is part of the runtime that programs for CPUs come with, and they have no kernels.
func MeasuredAttention() (shapes []*cpu.AttentionShape) {
	for _, s := range attentionShapes {
		shapes = append(shapes, s.shape())
	}
	return shapes
}

// Text is what a point is of, for people.
func (p *Point) Text() string {
	switch p.Of {
	case OfGEMM, OfFP8:
		turned := map[string]string{"": "", "a": " of weights", "b": " of inputs"}[p.Turn]
		return fmt.Sprintf("%s %d × %d × %d%s", p.Type, p.M, p.N, p.K, turned)
	case OfAttention:
		return fmt.Sprintf("forward, %d × %d queries, heads of %d", p.Batch, p.M, p.K)
	case OfAttentionGrad:
		return fmt.Sprintf("backward, %d × %d queries, heads of %d", p.Batch, p.M, p.K)
	}
	return strings.ReplaceAll(p.Of, "_", "-")
}
