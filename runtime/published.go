package runtime

import (
	"strconv"
	"strings"
)

// publishedTensor is one published tensor of one layer.
type publishedTensor struct {
	name string
	*Published
	at []int // for each share, the index of its tensor in tensors
}

// publishedElems returns the number of elements of the tensor.
func publishedElems(p *Published) int {
	n := 1
	for _, d := range p.Shape {
		n *= int(d)
	}
	return n
}

// publishedTensors lists the tensors of the files, layer by layer.
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

// slabOf calls move for each part of a share that a rank holds: n elements from byte offset at in the arena, and every
// step-th element of the published tensor from element pub.
func slabOf(s *Share, k *kind, r *Rank, t *tensor, move func(at, pub, step, n int)) {
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

// parts returns the tensors of each rank.
func (c *crew) parts() [][]tensor {
	parts := make([][]tensor, len(c.ranks))
	for i, r := range c.ranks {
		parts[i] = tensors(r.Program, r.Coord)
	}
	return parts
}
