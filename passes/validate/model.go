package validate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/planc-dev/planc/ir/spec"
)

// config returns the row's model: of its shape, or of the catalogue if the row has only a name.
func (r *Row) config() (*spec.Config, error) {
	if r.count("hidden", 0) == 0 {
		return r.catalogued(r.lower("model"))
	}
	n := r.count("experts", 0)
	if n <= 1 {
		return r.shaped()
	}
	// A row does not describe all of a model with experts; the catalogue does.
	if c, err := r.catalogued(strings.ReplaceAll(r.lower("model"), "_", "-")); err == nil && c.Experts == n &&
		c.Layers == r.count("layers", 0) && c.Hidden == r.count("hidden", 0) {
		return c, nil
	}
	k := r.count("top_k", 0)
	if k < 1 {
		return nil, fmt.Errorf("it has %d experts, the catalogue no such model, and top_k, how many of them a token "+
			"goes to, is missing", n)
	}
	c, err := r.shaped()
	if err != nil {
		return nil, err
	}
	c.Family, c.Experts, c.Choices, c.ExpertFFN, c.RouteShare = spec.Mixtral, n, k, c.FFN, true
	return c, nil
}

// shaped returns the model with the row's own sizes.
func (r *Row) shaped() (*spec.Config, error) {
	c := &spec.Config{Family: spec.GPT2, Name: r.Text("model"), Layers: r.count("layers", 0),
		Hidden: r.count("hidden", 0), Heads: r.count("heads", 0),
		FFN: r.count("ffn_hidden", 0), Vocab: r.count("vocab", 0), MaxPositions: r.count("seq_len", 0),
		Activation: "gelu_new", NormEps: 1e-5, InitStd: 0.02,
		Tied: true, AttentionBias: true, QKVBias: true, MLPBias: true}
	if r.truth("gated_mlp", false) {
		c.Family, c.Activation, c.Tied, c.RopeTheta = spec.Llama, "silu", false, 10000
		c.AttentionBias, c.QKVBias, c.MLPBias = false, false, false
	}
	if c.Heads == 0 && c.Hidden > 0 {
		c.Heads = headsOf(c.Hidden)
	}
	// GPT-2's own dropout, which runs of its time have
	if !r.truth("gated_mlp", false) && r.lower("flash_attention") == "0" {
		c.DropEmbd, c.DropResid, c.DropAttn = 0.1, 0.1, 0.1
	}
	c.KVHeads = r.count("kv_heads", c.Heads)
	if c.FFN == 0 {
		c.FFN = 4 * c.Hidden
	}
	if c.Vocab == 0 {
		c.Vocab = defaultVocab
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"layers", c.Layers}, {"heads", c.Heads}, {"seq_len", c.MaxPositions}} {
		if f.n < 1 {
			return nil, fmt.Errorf("%s is missing", f.name)
		}
	}
	if c.Hidden%c.Heads != 0 || c.Heads%c.KVHeads != 0 {
		return nil, fmt.Errorf("hidden %d, heads %d and kv_heads %d do not divide", c.Hidden, c.Heads, c.KVHeads)
	}
	c.HeadDim = c.Hidden / c.Heads
	c.RotaryDim = c.HeadDim
	return c, nil
}

// catalogued returns a model of the catalogue.
func (r *Row) catalogued(name string) (*spec.Config, error) {
	if r.count("seq_len", 0) < 1 {
		return nil, fmt.Errorf("seq_len is missing")
	}
	c, err := spec.LoadModel(name, func(string) ([]byte, error) { return nil, errors.New("no files are read") })
	if err != nil {
		return nil, fmt.Errorf("model %q is not in the catalogue, and its shape (layers, hidden, heads) is missing",
			r.Text("model"))
	}
	return c, nil
}

// headsOf returns the assumed number of heads of a model that does not state it: the divisor of its width for which
// heads are nearest to 128 wide, as in most large models.
func headsOf(hidden int) int {
	best := 1
	for n := 1; n <= hidden; n++ {
		if hidden%n == 0 && hidden/n%2 == 0 && abs(hidden/n-headWidth) < abs(hidden/best-headWidth) {
			best = n
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }
