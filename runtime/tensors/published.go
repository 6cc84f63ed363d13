package tensors

import (
	"io"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/program"
)

// publishedTensor is one published tensor of one layer.
type publishedTensor struct {
	name string
	*program.Published
	layer int   // of the parameters, from 0
	at    []int // for each share, the index of its tensor in tensors
}

// publishedElems returns the number of elements of the tensor.
func publishedElems(p *program.Published) int {
	n := 1
	for _, d := range p.Shape {
		n *= int(d)
	}
	return n
}

// publishedTensors lists the tensors of the files, layer by layer.
func publishedTensors(p *program.Program) []publishedTensor {
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
	out := publishedLayers(&p.Weights, func(param string) int { return layers[param] })
	for i := range out {
		t := &out[i]
		for _, s := range t.Shares {
			t.at = append(t.at, first[s.Param]+t.layer)
		}
	}
	return out
}

// publishedLayers lists the tensors of the files, layer by layer. layers returns how many a parameter has.
func publishedLayers(w *program.Weights, layers func(param string) int) (out []publishedTensor) {
	for i := range w.Tensors {
		pub := &w.Tensors[i]
		for layer := range layers(pub.Shares[0].Param) {
			out = append(out, publishedTensor{name: strings.ReplaceAll(pub.Name, "{layer}",
				strconv.Itoa(pub.From+layer)), Published: pub, layer: layer})
		}
	}
	return out
}

// publishedAt returns the index in the published tensor of an element of a share, and how far apart there the elements
// of the parameter's last dim are. logical is the element's number, counted from the first of Rows, and size returns
// the size of a dim.
func publishedAt(s *program.Share, size func(dim int) int, logical int) (pub, step int) {
	last := len(s.Strides) - 1
	pub, step = s.Offset, 1
	if last >= 0 {
		step = s.Strides[last]
	}
	for d := last; d >= 0; d-- {
		n := size(d)
		pub += logical % n * s.Strides[d]
		logical /= n
	}
	return pub, step
}

// slabOf calls move for each part of a share that a rank holds: n elements from byte offset at in the arena, and every
// step-th element of the published tensor from element pub.
func slabOf(s *program.Share, k *kind, r *Store, t *Tensor, move func(at, pub, step, n int)) {
	k.slab(r, t, s.Rows[0], s.Rows[1], func(at, logical, n int) { // logical counts from the first of Rows
		pub, step := publishedAt(s, func(d int) int { return t.dims[d].size }, logical)
		move(at, pub, step, n)
	})
}

// published returns the model as a file in Hugging Face's layout. Each tensor is gathered from the ranks' arenas when
// it is written.
func published[F Float](c *Stores) ckpt.Content {
	p := c.program()
	parts, placed, k := c.parts(), publishedTensors(p), weightKind(p)
	out := ckpt.Content{Metadata: map[string]string{"format": "pt"}}
	for _, t := range placed {
		out.Tensors = append(out.Tensors, ckpt.Tensor{Name: t.name, DType: ckpt.DTypeOf[F](), Shape: t.Shape})
	}
	out.Fill = func(i int, w io.Writer) error {
		x := &placed[i]
		buf := make([]F, publishedElems(x.Published))
		for s := range x.Shares {
			for j, r := range c.All {
				t := &parts[j][x.at[s]]
				if !k.isSaved(r, t) {
					continue
				}
				slabOf(&x.Shares[s], &k, r, t, func(at, pub, step, n int) {
					var b [BlockElems]F
					for done := 0; done < n; done += BlockElems {
						part := b[:min(n-done, BlockElems)]
						Read(r, k.elem, at+done*k.elem.Size(), part)
						for l, v := range part {
							buf[pub+(done+l)*step] = v
						}
					}
				})
			}
		}
		return ckpt.WriteFloats(w, buf)
	}
	return out
}
