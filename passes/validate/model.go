package validate

import (
	"errors"
	"fmt"

	"github.com/planc-dev/planc/ir/spec"
)

// config is the row's model: by its shape, or of the catalogue where the row has a name alone.
func (r *Row) config() (*spec.Config, error) {
	if n := r.count("experts", 0); n > 1 {
		return nil, fmt.Errorf("it has %d experts, and rows with experts are not priced yet", n)
	}
	if r.count("hidden", 0) == 0 {
		return r.catalogued()
	}
	c := &spec.Config{Family: spec.GPT2, Name: r.Text("model"), Layers: r.count("layers", 0), Hidden: r.count("hidden", 0), Heads: r.count("heads", 0),
		FFN: r.count("ffn_hidden", 0), Vocab: r.count("vocab", 0), MaxPositions: r.count("seq_len", 0), Activation: "gelu_new", NormEps: 1e-5, InitStd: 0.02,
		Tied: true, AttentionBias: true, QKVBias: true, MLPBias: true}
	if r.truth("gated_mlp", false) {
		c.Family, c.Activation, c.Tied, c.RopeTheta = spec.Llama, "silu", false, 10000
		c.AttentionBias, c.QKVBias, c.MLPBias = false, false, false
	}
	if c.Heads == 0 && c.Hidden > 0 {
		c.Heads = headsOf(c.Hidden)
	}
	if !r.truth("gated_mlp", false) && r.lower("flash_attention") == "0" { // GPT-2's own, which runs of its time keep
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

// catalogued is a model of the catalogue.
func (r *Row) catalogued() (*spec.Config, error) {
	if r.count("seq_len", 0) < 1 {
		return nil, fmt.Errorf("seq_len is missing")
	}
	c, err := spec.LoadModel(r.lower("model"), func(string) ([]byte, error) { return nil, errors.New("no files are read") })
	if err != nil {
		return nil, fmt.Errorf("model %q is not in the catalogue, and its shape (layers, hidden, heads) is missing", r.Text("model"))
	}
	return c, nil
}

// headsOf is how many heads a model is taken to have that does not say: the divisor of its width whose heads are nearest to
// 128 wide, as those of most large models are.
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
