package megatron

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// modelArguments returns the options that give a model its shape, or why Megatron-LM does not have it.
func modelArguments(c *spec.Config, seq int) (args []string, err error) {
	a := &argumentList{}
	a.add("--num-layers", c.Layers)
	a.add("--hidden-size", c.Hidden)
	a.add("--num-attention-heads", c.Heads)
	a.add("--seq-length", seq)
	a.add("--max-position-embeddings", max(c.MaxPositions, seq))
	a.add("--vocab-size", c.Vocab)
	if why := unlike(c); why != "" {
		var diags ir.Diags
		diags.Addf(ir.Pos{}, NoExport, "model: Megatron-LM has no blocks of %s: %s", c.Family, why)
		return nil, diags
	}
	a.attention(c)
	a.mlp(c)
	a.norms(c)
	a.experts(c)
	if !c.Tied {
		a.flag("--untie-embeddings-and-output-weights")
	}
	a.add("--attention-dropout", number(c.DropAttn))
	a.add("--hidden-dropout", number(c.DropResid))
	a.add("--init-method-std", number(c.InitStd))
	return a.args, nil
}

// unlike returns which part of a model Megatron-LM's GPT does not have; "" if it has all.
func unlike(c *spec.Config) string {
	switch {
	case c.Bidirectional || c.ImageSize > 0:
		return "it is no decoder"
	case c.PostNorm:
		return "norms follow the residual sum"
	case c.ParallelResidual:
		return "attention and MLP read the same residual"
	case c.SandwichNorm:
		return "norms follow attention and MLP"
	case c.EmbedNorm || c.Family == spec.Bloom:
		return "its positions are ALiBi"
	case c.EmbedDim > 0:
		return "the embedding has a width of its own"
	case c.Window > 0:
		return "it has sliding windows"
	case c.EmbedScale != 1 || c.AttentionSoftcap > 0 || c.LogitSoftcap > 0:
		return "embeddings or scores are scaled"
	case c.BiasFreeNorm:
		return "its layer norms have no biases"
	case c.QKVBias && !c.AttentionBias && c.MLPBias:
		return "only some projections have biases"
	}
	return ""
}

// argumentList collects options.
type argumentList struct{ args []string }

func (a *argumentList) add(name string, value any) {
	a.args = append(a.args, name+" "+fmt.Sprint(value))
}

func (a *argumentList) flag(name string) { a.args = append(a.args, name) }

// number returns a number in the form of the command line.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// attention adds heads and positions.
func (a *argumentList) attention(c *spec.Config) {
	switch {
	case c.KVLatent > 0:
		a.latent(c)
	case c.KVHeads != c.Heads:
		a.flag("--group-query-attention")
		a.add("--num-query-groups", c.KVHeads)
	}
	if c.KVLatent == 0 && c.HeadDim*c.Heads != c.Hidden {
		a.add("--kv-channels", c.HeadDim)
	}
	if c.QKNorm {
		a.flag("--qk-layernorm")
	}
	if c.Family == spec.GPT2 || c.Family == spec.OPT {
		return // learned positions are the default
	}
	a.add("--position-embedding-type", "rope")
	a.add("--rotary-base", int(math.Round(c.RopeTheta)))
	if c.KVLatent == 0 && c.RotaryDim > 0 && c.RotaryDim < c.HeadDim {
		a.add("--rotary-percent", number(float64(c.RotaryDim)/float64(c.HeadDim)))
	}
	if c.RopeScaling.Kind == "llama3" {
		a.flag("--use-rope-scaling")
		a.add("--rope-scaling-factor", number(c.RopeScaling.Factor))
	}
}

// latent adds multi-head latent attention.
func (a *argumentList) latent(c *spec.Config) {
	a.flag("--multi-latent-attention")
	if c.QLatent > 0 {
		a.add("--q-lora-rank", c.QLatent)
	}
	a.add("--kv-lora-rank", c.KVLatent)
	a.add("--qk-head-dim", c.PlainDim)
	a.add("--qk-pos-emb-head-dim", c.HeadDim-c.PlainDim)
	a.add("--v-head-dim", c.VDim)
}

// mlp adds the MLP and the biases.
func (a *argumentList) mlp(c *spec.Config) {
	a.add("--ffn-hidden-size", c.FFN)
	isGated := c.Family != spec.GPT2 && c.Family != spec.OPT && c.Family != spec.GPTNeoX
	if isGated {
		a.flag("--swiglu")
	} else if c.Activation == "gelu_new" {
		a.flag("--openai-gelu")
	}
	if !c.MLPBias {
		a.flag("--disable-bias-linear")
	}
	if c.QKVBias && !c.MLPBias {
		a.flag("--add-qkv-bias")
	}
}

// groupedGEMM is the option that runs the experts' GEMMs together.
const groupedGEMM = "--moe-grouped-gemm"

// runsGroupedGEMM reports whether Megatron-LM accepts --moe-grouped-gemm on GPUs of an architecture, such as sm_90a.
// Source: megatron-core 0.19.2, training/arguments.py: validate_args asks for compute capability 8.
func runsGroupedGEMM(arch string) bool {
	number, isNVIDIA := strings.CutPrefix(arch, "sm_")
	n, err := strconv.Atoi(strings.TrimRight(number, "af"))
	return !isNVIDIA || err != nil || n >= 80
}

// norms adds the norm of blocks.
func (a *argumentList) norms(c *spec.Config) {
	if c.Family != spec.GPT2 && c.Family != spec.OPT && c.Family != spec.GPTNeoX {
		a.add("--normalization", "RMSNorm")
	}
	a.add("--norm-epsilon", number(c.NormEps))
}

// experts adds the experts and their router.
func (a *argumentList) experts(c *spec.Config) {
	if c.Experts == 0 {
		return
	}
	a.add("--num-experts", c.Experts)
	a.add("--moe-ffn-hidden-size", c.ExpertFFN)
	a.add("--moe-router-topk", c.Choices)
	a.add("--moe-token-dispatcher-type", "alltoall")
	a.flag(groupedGEMM)
	if c.SharedFFN > 0 {
		a.add("--moe-shared-expert-intermediate-size", c.SharedFFN)
	}
	if c.SharedGate {
		a.flag("--moe-shared-expert-gate")
	}
	if c.Dense > 0 {
		a.add("--moe-layer-freq", fmt.Sprintf("'([0]*%d+[1]*%d)'", c.Dense, c.Layers-c.Dense))
	}
	if c.RouteGate == "sigmoid" {
		a.add("--moe-router-score-function", "sigmoid")
	}
	if c.RouteBias {
		a.flag("--moe-router-enable-expert-bias")
	}
	if c.Groups > 1 {
		a.add("--moe-router-num-groups", c.Groups)
		a.add("--moe-router-group-topk", c.BestGroups)
	}
	if c.RouteScale != 1 && c.RouteScale > 0 {
		a.add("--moe-router-topk-scaling-factor", number(c.RouteScale))
	}
	switch {
	case c.Balance > 0:
		a.add("--moe-router-load-balancing-type", balanceLoss(c.Over))
		a.add("--moe-aux-loss-coeff", number(c.Balance))
	default:
		a.add("--moe-router-load-balancing-type", "none")
	}
	if c.RouterZ > 0 {
		a.add("--moe-z-loss-coeff", number(c.RouterZ))
	}
}
