package weights

import (
	"slices"
	"strings"
)

// naming is how Hugging Face's files hold the models of a family.
type naming struct {
	rows      []row // of all models of the family: where a model lacks the parameters it lacks the tensor
	spellings [][2]string
	ignored   []string
}

// row is a tensor of such files. dims are the tensor's: commas divide them, spaces the factors of one. What stands in
// brackets each of the parameters has for itself, one after the other. A factor that a parameter lacks is left out;
// 1 is a dim of one element; head_dim is the values' v_dim too. A parameter NAME@ROW is that row of its first dim.
type row struct {
	name, dims string
	params     []string // segment and name
}

// expertHere stands for an expert's number in the name of a tensor that each has for itself.
const expertHere = "{expert}"

// table is a weight alone.
func table(name, dims string, params ...string) []row {
	return []row{{name + ".weight", dims, params}}
}

// linear is a weight, stored [out, in], and its bias.
func linear(name, dims string, params ...string) []row {
	out, _, _ := strings.Cut(dims, ",")
	return append(table(name, dims, params...), row{name + ".bias", out, biases(params)})
}

// conv1D is a weight, stored [in, out], and its bias.
func conv1D(name, dims string, params ...string) []row {
	_, out, _ := strings.Cut(dims, ",")
	return append(table(name, dims, params...), row{name + ".bias", out, biases(params)})
}

func biases(params []string) []string {
	out := make([]string, len(params))
	for i, p := range params {
		out[i] = p + "_bias"
	}
	return out
}

// norm is a gain and, in layer norms, a bias.
func norm(name, param string) []row {
	return []row{{name + ".weight", normDims, []string{param + ".gain"}}, {name + ".bias", normDims,
		[]string{param + ".bias"}}}
}

// alsoDense are rows of blocks, with those of the first blocks where these have no experts and are blocks of another
// kind.
func alsoDense(rows []row) []row {
	out := slices.Clone(rows)
	for _, r := range rows {
		dense := row{name: r.name, dims: r.dims}
		for _, p := range r.params {
			dense.params = append(dense.params, strings.Replace(p, "block.", "dense.", 1))
		}
		out = append(out, dense)
	}
	return out
}

// normDims are those of the norms over the residual stream; of BERT's head they are the transform's.
const normDims = "hidden transform"

// attention is the four projections as tensors of their own.
func attention(prefix, q, k, v, o string) []row {
	const in = "head group head_dim, hidden"
	return slices.Concat(linear(prefix+q, in, "block.attn.q"), linear(prefix+k, in, "block.attn.k"),
		linear(prefix+v, in, "block.attn.v"),
		linear(prefix+o, "hidden, head group head_dim", "block.attn.o"))
}
