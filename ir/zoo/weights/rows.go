package weights

import (
	"slices"
	"strings"
)

// naming describes Hugging Face's files of the models of a family.
type naming struct {
	rows      []row // for all models of the family; a model without the parameters has no such tensor
	spellings [][2]string
	ignored   []string
}

// row is a tensor of such files. dims are the tensor's dims: commas separate them, and spaces separate the factors of
// one dim. Each parameter has the factors in brackets for itself, one parameter after the other. A factor that a
// parameter lacks is left out. 1 is a dim of one element. head_dim also stands for v_dim in values. A parameter
// NAME@ROW is that row of its first dim.
type row struct {
	name, dims string
	params     []string // segment and name
}

// expertHere stands for an expert's number in the name of a tensor that exists once per expert.
const expertHere = "{expert}"

// table is a weight without bias.
func table(name, dims string, params ...string) []row {
	return []row{{name + ".weight", dims, params}}
}

// linear is a weight, stored as [out, in], and its bias.
func linear(name, dims string, params ...string) []row {
	out, _, _ := strings.Cut(dims, ",")
	return append(table(name, dims, params...), row{name + ".bias", out, biases(params)})
}

// conv1D is a weight, stored as [in, out], and its bias.
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

// norm is a gain and, for layer norms, a bias.
func norm(name, param string) []row {
	return []row{{name + ".weight", normDims, []string{param + ".gain"}}, {name + ".bias", normDims,
		[]string{param + ".bias"}}}
}

// alsoDense returns rows of blocks, followed by those of the leading blocks without experts, which belong to another
// segment.
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

// normDims are the dims of the norms over the residual stream; in BERT's head, those of the transform.
const normDims = "hidden transform"

// attention returns the four projections as separate tensors.
func attention(prefix, q, k, v, o string) []row {
	const in = "head group head_dim, hidden"
	return slices.Concat(linear(prefix+q, in, "block.attn.q"), linear(prefix+k, in, "block.attn.k"),
		linear(prefix+v, in, "block.attn.v"),
		linear(prefix+o, "hidden, head group head_dim", "block.attn.o"))
}
