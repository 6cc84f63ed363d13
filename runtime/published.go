package runtime

import (
	"strconv"
	"strings"
)

// Weights says where the model's parameters lie in the files that other tools exchange. A program without any
// reads and writes planc's own layout alone.
type Weights struct {
	Family    string      // whose names these are, such as llama
	Config    string      // config.json of such a folder
	Tensors   []Published // in the files' order
	Spellings [][2]string // of names: a file may write the second text for the first one
	Tied      [][2]string // tensors that files may hold too, each with the tensor of the model that it must equal
	Ignored   []string    // names of tensors that files may hold beside the model's; * is any text
}

// Published is a tensor of such files, or one for each layer.
type Published struct {
	Name   string // "{layer}" stands for a layer's index
	From   int    // that of the parameters' first layer, where other blocks come before
	Shape  []int64
	Shares []Share // together they hold each element once
}

// Share is where a parameter, or some rows of it, lies in a published tensor. The parameter's element of indices i
// is the tensor's element number Offset + Σ Strides[k]·i[k], i[0] counted from Rows[0].
type Share struct {
	Param   string // Param.Name
	Rows    [2]int // of its first dim, from and to
	Offset  int
	Strides []int
}

// publishedTensors is one published tensor, of one layer.
type publishedTensor struct {
	name string
	*Published
	at []int // of each share the index of its tensor in tensors
}

// elems is the number of the tensor's elements.
func (p *Published) elems() int {
	n := 1
	for _, d := range p.Shape {
		n *= int(d)
	}
	return n
}

// publishedTensor lists the tensors of the files, layer by layer.
func (p *Program) publishedTensors() []publishedTensor {
	first := map[string]int{}
	n := 0
	for i := range p.Params {
		first[p.Params[i].Name] = n
		n += p.Params[i].Layers
	}
	layers := map[string]int{}
	for i := range p.Params {
		layers[p.Params[i].Name] = p.Params[i].Layers
	}
	var out []publishedTensor
	for i := range p.Weights.Tensors {
		pub := &p.Weights.Tensors[i]
		for layer := range layers[pub.Shares[0].Param] {
			t := publishedTensor{name: strings.ReplaceAll(pub.Name, "{layer}", strconv.Itoa(pub.From+layer)),
				Published: pub}
			for _, s := range pub.Shares {
				t.at = append(t.at, first[s.Param]+layer)
			}
			out = append(out, t)
		}
	}
	return out
}

// slab moves what a rank holds of a share: n elements of the arena from byte offset at on, and every step-th of the
// published tensor from element pub on.
func (s *Share) slab(k *kind, r *Rank, t *tensor, move func(at, pub, step, n int)) {
	last := len(s.Strides) - 1
	k.slab(r, t, s.Rows[0], s.Rows[1], func(at, logical, n int) { // logical counts from the first of Rows
		pub, step := s.Offset, 1
		if last >= 0 {
			step = s.Strides[last]
		}
		for d := last; d >= 0; d-- {
			size := t.dims[d].size
			pub += logical % size * s.Strides[d]
			logical /= size
		}
		move(at, pub, step, n)
	})
}

// parts are the ranks' tensors, rank by rank.
func (c *crew) parts() [][]tensor {
	parts := make([][]tensor, len(c.ranks))
	for i, r := range c.ranks {
		parts[i] = tensors(r.Program, r.Coord)
	}
	return parts
}
