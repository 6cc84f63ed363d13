package spec

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// The supported model families, by the model_type of config.json.
const (
	GPT2       = "gpt2"
	OPT        = "opt"
	Bloom      = "bloom"
	GPTNeoX    = "gpt_neox"
	Llama      = "llama"
	Mistral    = "mistral"
	Qwen2      = "qwen2"
	Qwen3      = "qwen3"
	Phi3       = "phi3"
	Gemma2     = "gemma2"
	Gemma3     = "gemma3_text"
	Mixtral    = "mixtral"
	Qwen2MoE   = "qwen2_moe"
	Qwen3MoE   = "qwen3_moe"
	DeepseekV2 = "deepseek_v2"
	DeepseekV3 = "deepseek_v3"
	BERT       = "bert"
	ViT        = "vit"
)

// Kinds of position embedding.
const (
	Learned = "learned" // a table with one row per position
	Rotary  = "rotary"
	Alibi   = "alibi"
)

// Config is a model in planc's terms, independent of the family and of the spelling of its config.json.
type Config struct {
	Family  string // one of the constants above
	Name    string // catalogue name, folder or file of config.json, or the job's name
	Vocab   int
	Hidden  int
	Layers  int
	Ahead   int // further blocks that predict later tokens (multi-token prediction); they are left out
	Heads   int
	KVHeads int // equal to Heads unless attention is grouped-query
	HeadDim int
	FFN     int // width of the MLP's hidden layer
	// rows of the position table; else the length that the model was trained for, 0 if config.json has none
	MaxPositions int
	// gelu_new, gelu, silu or relu; in Llama and its descendants, the activation of the gate projection
	Activation    string
	NormEps       float64
	InitStd       float64
	Tied          bool    // the head is the embedding
	DropEmbd      float64 // probability of dropping an element of the embeddings
	DropResid     float64 // of a block's output before the residual sum
	DropAttn      float64 // of an attention weight
	RopeTheta     float64 // base of the rotary frequencies
	RopeScaling   RopeScaling
	AttentionBias bool // the attention's output projection has a bias, and q, k and v too
	QKVBias       bool // q, k and v have biases; true if AttentionBias is
	MLPBias       bool // all projections of the MLP have biases

	// Features of single families; zero in the others.
	BiasFreeNorm     bool      // gpt2: norms have no bias
	PositionOffset   int       // rows of the position table before position 0 (opt: 2)
	EmbedDim         int       // opt: width of the embedding table if a projection maps it to Hidden and back, else 0
	PostNorm         bool      // norms follow the residual sum, and there is no final norm (opt-350m, bert)
	EmbedNorm        bool      // a norm follows the embedding (bloom, bert)
	ParallelResidual bool      // gpt_neox: attention and MLP read the same residual, and both results are added to it
	RotaryDim        int       // leading elements of a head that are rotated; HeadDim if all
	UnitNorm         bool      // gemma: a norm scales by 1 + its parameter
	QKNorm           bool      // queries and keys are normalized over each head (qwen3, gemma3)
	SandwichNorm     bool      // gemma2, gemma3: norms also follow attention and MLP
	EmbedScale       float64   // factor of the embeddings (gemma: the square root of Hidden), else 1
	QueryScale       float64   // factor of the attention scores; 1/sqrt(HeadDim) unless config.json sets it
	AttentionSoftcap float64   // gemma2: a score becomes cap·tanh(score/cap)
	LogitSoftcap     float64   // gemma2: the same for logits
	Window           int       // local layers see this many last keys, including the position itself; 0: no window
	Local            ir.Layers // which layers are local; "" with a Window: all
	LocalTheta       float64   // gemma3: base of the rotary frequencies in local layers
	Bidirectional    bool      // every position sees all others (bert, vit)
	TokenTypes       int       // bert: rows of the segment table
	HeadBias         bool      // bert: the logits have a bias
	HeadTransform    bool      // bert: a projection, an activation and a norm precede the logits
	ImageSize        int       // vit: side length in pixels
	PatchSize        int       // vit: side length of a patch in pixels
	Channels         int       // vit: colour channels

	// Multi-head latent attention (MLA, deepseek): keys and values, and optionally queries, are projected from a narrow
	// latent vector. Zero if the model has no MLA.
	KVLatent int // width of the latent vector of keys and values
	QLatent  int // width of the latent vector of queries; 0: queries are projected from the residual stream
	// leading elements of a head's queries and keys without positions; RotaryDim rotated ones follow
	PlainDim   int
	VDim       int  // elements of a head's values
	RotaryNext bool // rotated pairs are adjacent elements, instead of half of RotaryDim apart

	// Experts of each block's MLP; zero if the model has none.
	Experts    int     // number of routed experts
	Choices    int     // experts per token
	ExpertFFN  int     // width of an expert's hidden layer
	SharedFFN  int     // width of the shared expert's hidden layer, which all tokens pass; 0 if there is none
	SharedGate bool    // qwen2_moe: the shared expert's output is multiplied by the sigmoid of a projection
	RouteShare bool    // a token's expert weights are normalized: they add up to 1
	RouteScale float64 // factor of the expert weights
	RouteGate  string  // scores of the router's outputs: softmax over the experts, or sigmoid of each
	RouteEps   float64 // added to the sum by which weights are normalized
	Groups     int     // number of expert groups, 0 if none
	BestGroups int     // groups from which a token's experts are chosen
	RouteBias  bool    // a bias per expert is added to its score for the choice, but not in its weight
	Dense      int     // leading blocks that have an MLP of width FFN instead of experts
	Routing            // settings of train.experts

	PaddingRow int // 1 + the row of the token table that lookups do not train, 0 if all rows are trained

	hf      any            // the keys of config.json as read, absent ones filled with their defaults
	special map[string]any // ids of special tokens, for other tools
	rotary  float64        // rotated fraction of a head, which determines RotaryDim
	at      map[string]ir.Pos
}

// RopeScaling is the scaling of rotary positions. Text returns ir's notation.
type RopeScaling struct {
	ir.RopeScaling
	Long []float64 // longrope: Factors for sequences longer than Original
}

// Text returns the scaling in the notation of ir.Attr.Rope, "" if there is none.
func (r RopeScaling) Text() string { return r.RopeScaling.String() }

// Fit chooses the values that depend on the sequence length.
func (c *Config) Fit(seqLen int) {
	if r := &c.RopeScaling; len(r.Long) > 0 && seqLen > r.Original {
		r.Factors = r.Long
	}
}

// Pos returns the position of a key of config.json, or of the model if the key is absent.
func (c *Config) Pos(key string) ir.Pos {
	if p, ok := c.at[key]; ok {
		return p
	}
	return c.at[""]
}

// blame returns the position to report when keys of config.json contradict each other: a command-line flag before a
// file, because the file alone may have been consistent; otherwise the first key that was given.
func (c *Config) blame(keys ...string) ir.Pos {
	found := c.at[""]
	for _, k := range slices.Backward(keys) {
		if p, ok := c.at[k]; ok && (strict.IsFlag(p) || !strict.IsFlag(found) || found == c.at[""]) {
			found = p
		}
	}
	return found
}

// String describes the model in one line.
func (c *Config) String() string {
	return fmt.Sprintf("%s: %s of %d layers, hidden %d, %d heads, %d parameters", c.Name, c.Family, c.Layers, c.Hidden,
		c.Heads, c.Params())
}
