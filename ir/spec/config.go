package spec

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// The families that can be built today, as model_type names them in config.json.
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

// How a model knows positions.
const (
	Learned = "learned" // a table of rows
	Rotary  = "rotary"
	Alibi   = "alibi"
)

// Config is a model in planc's own words, whatever family and spelling it came from.
type Config struct {
	Family        string // one of the constants above
	Name          string // catalogue name, folder or file of config.json, or the job's name
	Vocab         int
	Hidden        int
	Layers        int
	Ahead         int // further blocks that predict tokens after the next one, which are left out
	Heads         int
	KVHeads       int // = Heads unless grouped
	HeadDim       int
	FFN           int    // width of the hidden layer of an MLP
	MaxPositions  int    // rows of a table of positions; else what the model was made for, 0 if it does not say
	Activation    string // gelu_new, gelu, silu or relu; in llama and its descendants it gates
	NormEps       float64
	InitStd       float64
	Tied          bool    // the head is the embedding
	DropEmbd      float64 // chance to drop an element of the embeddings,
	DropResid     float64 // of what enters the residual stream,
	DropAttn      float64 // of the attention weights
	RopeTheta     float64 // rotary base
	RopeScaling   RopeScaling
	AttentionBias bool // biases of the attention's output projection, and of q, k, v too
	QKVBias       bool // biases of q, k, v; true where AttentionBias is
	MLPBias       bool // of both or all three projections of an MLP

	// What single families add; zero where they do not.
	PositionOffset   int       // rows of the position table before position 0 (opt: 2)
	EmbedDim         int       // opt: width of the embedding table where a projection leads to Hidden and back, else 0
	PostNorm         bool      // norms follow the residual sum, none ends the model (opt-350m, bert)
	EmbedNorm        bool      // a norm follows the embedding (bloom, bert)
	ParallelResidual bool      // gpt_neox: attention and MLP read one residual and add to it together
	RotaryDim        int       // elements of a head that are turned, from the first; HeadDim if all
	UnitNorm         bool      // gemma: a norm's gain is 1 + its parameter
	QKNorm           bool      // queries and keys are normed over a head (qwen3, gemma3)
	SandwichNorm     bool      // gemma2, gemma3: norms after attention and MLP too
	EmbedScale       float64   // factor of the embeddings (gemma: the square root of Hidden), 1 if none
	QueryScale       float64   // factor of attention's scores; 1/sqrt(HeadDim) unless the model says otherwise
	AttentionSoftcap float64   // gemma2: scores become cap·tanh(score/cap)
	LogitSoftcap     float64   // gemma2: so do logits
	Window           int       // keys at most this far back in local layers, the position itself counted; 0: no window
	Local            ir.Layers // which layers are local; "" with a Window: all
	LocalTheta       float64   // gemma3: rotary base of local layers
	Bidirectional    bool      // every position sees every other (bert, vit)
	TokenTypes       int       // bert: rows of the table of segments
	HeadBias         bool      // bert: the logits have a bias
	HeadTransform    bool      // bert: projection, activation and norm before the logits
	ImageSize        int       // vit: pixels of a side
	PatchSize        int       // vit: pixels of a patch's side
	Channels         int       // vit: colours of a pixel

	// Latent attention (deepseek): keys and values, and perhaps queries, are projected from a narrow stream of their
	// own; zero where a model has none.
	KVLatent int // width of what keys and values are made of
	QLatent  int // of what queries are made of; 0: of the residual stream
	// elements of a head's queries and keys, from the first, that know no positions; RotaryDim others follow
	PlainDim   int
	VDim       int  // elements of a head's values
	RotaryNext bool // elements that turn together are neighbours, not half of RotaryDim apart

	// Experts, in each block's MLP; zero where a model has none.
	Experts    int     // how many
	Choices    int     // to how many of them a token goes
	ExpertFFN  int     // width of the hidden layer of one
	SharedFFN  int     // of an expert that all tokens go to, 0 if there is none
	SharedGate bool    // qwen2_moe: the shared expert's output is times the sigmoid of a projection
	RouteShare bool    // a token's weights are shares: they add up to 1
	RouteScale float64 // factor of the weights
	RouteGate  string  // what makes scores of the router's outputs: softmax over the experts, or sigmoid of each
	RouteEps   float64 // added to the sum that weights are shares of
	Groups     int     // experts in so many groups, 0 if in none,
	BestGroups int     // and from how many of them a token's are chosen
	RouteBias  bool    // a number for each expert is added to its score where it is chosen, and not in its weight
	Dense      int     // so many first blocks have an MLP of width FFN, and no experts
	Routing            // what train.experts says

	PaddingRow int // 1 + the row of the token table that looking it up does not train, 0 if there is none

	hf      any            // config.json's keys as read, those that were absent filled in
	special map[string]any // tokens that mean something to other tools
	rotary  float64        // part of a head that is turned, from which RotaryDim follows
	at      map[string]ir.Pos
}

// RopeScaling stretches rotary positions. Text is how ir writes it.
type RopeScaling struct {
	ir.RopeScaling
	Long []float64 // longrope: Factors of sequences longer than Original
}

// Text is the scaling as ir.Attr.Rope has it; "" for none.
func (r RopeScaling) Text() string { return r.RopeScaling.String() }

// Fit chooses what depends on the length of sequences.
func (c *Config) Fit(seqLen int) {
	if r := &c.RopeScaling; len(r.Long) > 0 && seqLen > r.Original {
		r.Factors = r.Long
	}
}

// Pos is where a field, by its name in config.json, was written; if it was not, where the model was.
func (c *Config) Pos(key string) ir.Pos {
	if p, ok := c.at[key]; ok {
		return p
	}
	return c.at[""]
}

// blame is where fields that do not fit each other were written, by their names in config.json: a flag before a file,
// since what it changed may have fitted, and else the first that was written.
func (c *Config) blame(keys ...string) ir.Pos {
	found := c.at[""]
	for _, k := range slices.Backward(keys) {
		if p, ok := c.at[k]; ok && (strict.IsFlag(p) || !strict.IsFlag(found) || found == c.at[""]) {
			found = p
		}
	}
	return found
}

// String is the model in one line.
func (c *Config) String() string {
	return fmt.Sprintf("%s: %s of %d layers, hidden %d, %d heads, %d parameters", c.Name, c.Family, c.Layers, c.Hidden,
		c.Heads, c.Params())
}
