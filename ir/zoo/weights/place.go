package weights

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// Locate returns the locations of the model's parameters in Hugging Face's files. Each parameter has exactly one
// location.
func Locate(m *ir.Model, c *spec.Config) *ir.Weights {
	n, ok := namings[c.Family]
	if !ok {
		panic(fmt.Sprintf("weights: family %q has no row", c.Family))
	}
	w := &ir.Weights{Family: c.Family, Config: string(c.HF(elemOf(m))), Spellings: n.spellings, Ignored: n.ignored}
	params, rows := untied(m), n.rows
	switch {
	case c.Tied:
		w.Tied = tiedTensors(n.rows)
	case c.Family == spec.BERT:
		rows, w.Spellings = untiedBERT(n)
	}
	for _, r := range rows {
		for _, one := range r.each(c.Experts) {
			if t, ok := one.place(params); ok {
				if strings.HasPrefix(t.Shares[0].Param, ir.BlockName+".") {
					t.From = c.Dense
				}
				w.Tensors = append(w.Tensors, t)
			}
		}
	}
	if c.Family == spec.ViT {
		squarePatches(w, c)
	}
	if c.Family == spec.DeepseekV3 { // of blocks that predict further tokens, which transformers leaves out too
		w.Ignored = append(slices.Clone(w.Ignored), fmt.Sprintf("model.layers.%d.*", c.Layers))
	}
	return w
}

// tiedTensors returns the tensors that a file may repeat if the head is tied to the embedding: the head, and BERT's
// bias of it.
func tiedTensors(rows []row) (list [][2]string) {
	names := map[string]string{}
	for _, r := range rows {
		for _, p := range r.params {
			names[p] = r.name
		}
	}
	if head, ok := names["head.lm_head"]; ok {
		list = append(list, [2]string{head, names["embed.wte"]})
	}
	if bias := names["head.lm_head_bias"]; bias == bertBias {
		list = append(list, [2]string{bertDecoderBias, bias})
	}
	return list
}

// untiedBERT returns the rows of BERT with an untied head. transformers 5 then adds the bias of the head's own
// projection, and keeps that of the tied head without reading it. transformers 4 has one bias, and saves it under the
// other name.
func untiedBERT(n naming) ([]row, [][2]string) {
	rows := slices.Clone(n.rows)
	for i := range rows {
		if rows[i].name == bertBias {
			rows[i].name = bertDecoderBias
		}
	}
	return rows, append(slices.Clone(n.spellings), [2]string{bertDecoderBias, bertBias})
}

// each returns the row, or one row per expert if it is for experts: an expert is a row of a parameter's first dim.
func (r row) each(experts int) []row {
	if !strings.Contains(r.name, expertHere) {
		return []row{r}
	}
	var out []row
	for e := range experts {
		one := row{name: strings.ReplaceAll(r.name, expertHere, strconv.Itoa(e)), dims: r.dims}
		for _, p := range r.params {
			one.params = append(one.params, fmt.Sprintf("%s@%d", p, e))
		}
		out = append(out, one)
	}
	return out
}

// untied returns the dims of the parameters that have a location in files, by segment and name.
func untied(m *ir.Model) map[string][]ir.Extent {
	out := map[string][]ir.Extent{}
	for _, s := range m.Segments {
		for _, v := range s.Forward.Weights() {
			if v.Param.Tied == "" {
				out[s.Name+"."+v.Name] = v.Type.Dims
			}
		}
	}
	return out
}

// item is a factor of a published tensor's dim, or a bracket of factors.
type item struct {
	dims []ir.Dim
	own  bool // a bracket
}

// items returns the items of each dim in row.dims.
func (r row) items() [][]item {
	var out [][]item
	for text := range strings.SplitSeq(r.dims, ",") {
		var list []item
		open := false
		for word := range strings.FieldsSeq(text) {
			word, opens := strings.CutPrefix(word, "[")
			word, closes := strings.CutSuffix(word, "]")
			if !open {
				list = append(list, item{own: opens})
			}
			last := &list[len(list)-1]
			last.dims = append(last.dims, ir.Dim(word))
			open = (open || opens) && !closes
		}
		out = append(out, list)
	}
	return out
}

// placing is a parameter whose location is being computed: dims without a stride yet have 0.
type placing struct {
	ir.Share
	dims []ir.Extent
}

// place computes the locations of the row's parameters; ok is false if the model has none of them.
func (r row) place(params map[string][]ir.Extent) (t ir.Published, ok bool) {
	var held []*placing
	for _, name := range r.params {
		if p := pick(name, params); p != nil {
			held = append(held, p)
		}
	}
	if len(held) == 0 {
		return t, false
	}
	t = ir.Published{Name: r.name}
	stride := 1
	for _, list := range slices.Backward(r.items()) {
		before := stride
		for _, it := range slices.Backward(list) {
			if it.own {
				stride *= inTurn(held, it.dims, stride)
			} else {
				stride *= together(held, it.dims[0], stride)
			}
		}
		t.Shape = append(t.Shape, int64(stride/before))
	}
	slices.Reverse(t.Shape)
	for _, p := range held {
		t.Shares = append(t.Shares, p.Share)
	}
	return t, true
}

// pick returns a parameter, or one row of it.
func pick(name string, params map[string][]ir.Extent) *placing {
	name, at, one := strings.Cut(name, "@")
	dims, ok := params[name]
	if !ok {
		return nil
	}
	for _, segment := range []string{ir.BlockName, ir.DenseName} {
		if rest, layered := strings.CutPrefix(name, segment+"."); layered {
			name = segment + ".{layer}." + rest
			break
		}
	}
	p := &placing{ir.Share{Param: name, Rows: [2]int{0, dims[0].Size}, Strides: make([]int, len(dims))},
		slices.Clone(dims)}
	if one {
		from, err := strconv.Atoi(at)
		if err != nil {
			panic("weights: " + at + " is not a row number")
		}
		p.Rows, p.dims[0].Size = [2]int{from, from + 1}, 1
	}
	return p
}

// together gives all parameters that have the dim the same stride there, and returns the dim's size.
func together(held []*placing, d ir.Dim, stride int) int {
	size := 1
	for _, p := range held {
		size = max(size, p.set(d, stride))
	}
	return size
}

// inTurn places the parts that the parameters have of the dims one after the other, and returns the total size.
func inTurn(held []*placing, dims []ir.Dim, stride int) int {
	before := 0
	for _, p := range held {
		width := 1
		for _, d := range slices.Backward(dims) {
			width *= p.set(d, stride*width)
		}
		p.Offset += before * stride
		before += width
	}
	return before
}

// set gives a dim its stride, and returns the dim's size: 1 if the parameter lacks it.
func (p *placing) set(d ir.Dim, stride int) int {
	for i, e := range p.dims {
		if e.Dim == d || d == ir.HeadDim && e.Dim == ir.VDim {
			p.Strides[i] = stride
			return e.Size
		}
	}
	return 1
}

// squarePatches gives the projection of an image's patches the shape of a convolution.
func squarePatches(w *ir.Weights, c *spec.Config) {
	for i := range w.Tensors {
		if t := &w.Tensors[i]; t.Name == patchWeight {
			t.Shape = []int64{t.Shape[0], int64(c.Channels), int64(c.PatchSize), int64(c.PatchSize)}
		}
	}
}

// elemOf returns the type of the model's parameters.
func elemOf(m *ir.Model) ir.Elem { return m.Segments[0].Forward.Weights()[0].Type.Elem }
