package zoo

import (
	"fmt"
	"maps"
	"math"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// Options are the inputs of a model's graph in addition to its configuration.
type Options struct {
	SeqLen int
	Batch  int // sequences; any number, because passes set it to one micro-batch of all replicas
	Elem   ir.Elem

	// Documents says that attention does not cross the borders of a sequence's documents, and that learned positions
	// count from the beginning of each. The data loader finds the borders.
	Documents bool
}

// family holds the parts that all models of a family share. The configuration holds the differences between them.
type family struct {
	source   func(m *model, b *builder) *ir.Value // embeds tokens or patches
	position string                               // spec.Learned, spec.Rotary or spec.Alibi
	norm     func(m *model, b *builder, name string, x *ir.Value, d ir.Dim) *ir.Value
	mlp      func(m *model, b *builder, x *ir.Value) *ir.Value
	byDepth  bool // the initial projections into the residual stream are smaller in deeper models
	decodes  bool // each position predicts the next, so the model can be sampled
}

// families are the rows by model_type. Papers: GPT-2 (Radford et al. 2019), OPT (Zhang et al. 2022), BLOOM (Scao et al.
// 2022), GPT-NeoX (Black et al. 2022), Llama (Touvron et al. 2023), Mistral (Jiang et al. 2023), Qwen2 and Qwen3 (Yang
// et al. 2024, 2025), Phi-3 (Abdin et al. 2024), Gemma 2 and 3 (Gemma Team 2024, 2025), DeepSeek-V2 and V3 (DeepSeek-AI
// 2024), BERT (Devlin et al. 2018), ViT (Dosovitskiy et al. 2020).
var families = map[string]family{
	spec.GPT2:       {words, spec.Learned, layerNorm, plainMLP, true, true},
	spec.OPT:        {words, spec.Learned, layerNorm, plainMLP, false, true},
	spec.Bloom:      {words, spec.Alibi, layerNorm, plainMLP, false, true},
	spec.GPTNeoX:    {words, spec.Rotary, layerNorm, plainMLP, false, true},
	spec.Llama:      {words, spec.Rotary, rmsNorm, gatedMLP, false, true},
	spec.Mistral:    {words, spec.Rotary, rmsNorm, gatedMLP, false, true},
	spec.Qwen2:      {words, spec.Rotary, rmsNorm, gatedMLP, false, true},
	spec.Qwen3:      {words, spec.Rotary, rmsNorm, gatedMLP, false, true},
	spec.Phi3:       {words, spec.Rotary, rmsNorm, gatedMLP, false, true},
	spec.Gemma2:     {words, spec.Rotary, rmsNorm, gatedMLP, false, true},
	spec.Gemma3:     {words, spec.Rotary, rmsNorm, gatedMLP, false, true},
	spec.Mixtral:    {words, spec.Rotary, rmsNorm, experts, false, true},
	spec.Qwen2MoE:   {words, spec.Rotary, rmsNorm, experts, false, true},
	spec.Qwen3MoE:   {words, spec.Rotary, rmsNorm, experts, false, true},
	spec.DeepseekV2: {words, spec.Rotary, rmsNorm, experts, false, true},
	spec.DeepseekV3: {words, spec.Rotary, rmsNorm, experts, false, true},
	spec.BERT:       {words, spec.Learned, layerNorm, plainMLP, false, false},
	spec.ViT:        {patches, spec.Learned, layerNorm, plainMLP, false, false},
}

// model is the state that the builders of a model share.
type model struct {
	spec.Config
	family
	opt  Options
	dims map[ir.Dim]int
}

// Dims that only this package uses.
const (
	narrow    ir.Dim = "embed"     // of an embedding that is narrower than the residual stream
	transform ir.Dim = "transform" // between the last block and the logits
	kind      ir.Dim = "kind"      // of an image's positions: the class token, or a patch

	plainDim ir.Dim = "plain_dim" // of queries and keys, without positions
)

// Build returns the logical graph of a model. The configuration must have been checked by spec.
func Build(name string, c spec.Config, o Options) *ir.Model {
	fam, ok := families[c.Family]
	if !ok {
		panic(fmt.Sprintf("zoo: no family %q", c.Family))
	}
	m := &model{Config: c, family: fam, opt: o, dims: map[ir.Dim]int{
		ir.Batch: o.Batch, ir.Seq: o.SeqLen, ir.KSeq: o.SeqLen, ir.Hidden: c.Hidden, ir.Vocab: c.Vocab,
		ir.Head: c.KVHeads, ir.Group: c.Heads / c.KVHeads, ir.HeadDim: c.HeadDim, ir.VDim: c.HeadDim,
		ir.FFN: c.FFN, ir.Expert: c.Experts, ir.Candidate: c.Experts, ir.Choice: c.Choices, ir.ExpertFFN: c.ExpertFFN,
		ir.SlotDim: o.Batch * o.SeqLen, ir.Position: c.MaxPositions + c.PositionOffset, ir.TypeID: c.TokenTypes,
		ir.Patch: c.Channels * c.PatchSize * c.PatchSize, narrow: c.EmbedDim, transform: c.Hidden, kind: 2,
	}}
	if c.KVLatent > 0 {
		maps.Copy(m.dims, map[ir.Dim]int{ir.VDim: c.VDim, ir.QLatent: c.QLatent, ir.KVLatent: c.KVLatent,
			plainDim: c.PlainDim, ir.RotaryDim: c.RotaryDim})
	}
	last := &ir.Segment{Name: "head", Count: 1, Forward: head(m)}
	if m.decodes {
		last.Logits = logits(m)
	}
	segments := []*ir.Segment{{Name: "embed", Count: 1, Forward: embed(m)}}
	if c.Dense > 0 {
		segments = append(segments, &ir.Segment{Name: ir.DenseName, Count: c.Dense,
			Forward: block(m, ir.DenseName, gatedMLP)})
	}
	if c.SharedFFN > 0 {
		m.dims[ir.FFN] = c.SharedFFN
	}
	segments = append(segments, &ir.Segment{Name: ir.BlockName, Count: c.Layers - c.Dense,
		Forward: block(m, ir.BlockName, m.mlp)})
	return &ir.Model{Name: name, Segments: append(segments, last)}
}

// Decodes reports whether a family's models predict the next token, so that they can be sampled.
func Decodes(family string) bool { return families[family].decodes }

// builder starts a function of the model.
func (m *model) builder(name string) *builder {
	return newBuilder(name, m.opt.Elem, maps.Clone(m.dims))
}

// Dims of the values that blocks share.
var (
	stream = []ir.Dim{ir.Batch, ir.Seq, ir.Hidden}
	tokens = []ir.Dim{ir.Batch, ir.Seq}
)

// residualStd returns the initial standard deviation of the projections into the residual stream. GPT-2's is divided by
// the square root of their number.
func (m *model) residualStd() float64 {
	if m.byDepth {
		return m.InitStd / math.Sqrt(float64(2*m.Layers))
	}
	return m.InitStd
}

// act returns the op of the configuration's activation.
func (m *model) act() ir.Op {
	return map[string]ir.Op{"gelu_new": ir.OpGelu, "gelu_pytorch_tanh": ir.OpGelu, "gelu": ir.OpGeluErf,
		"silu": ir.OpSilu, "relu": ir.OpRelu}[m.Activation]
}
