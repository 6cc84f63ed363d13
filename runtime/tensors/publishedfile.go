package tensors

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/program"
)

// WeightsExtra is the key of a manifest's Extra that has the program's Weights as JSON, from which a checkpoint can be
// exported without the program. A program without a published layout writes none.
const WeightsExtra = "weights"

// SaveWeights records where the parameters lie in published files.
func SaveWeights(w *program.Weights, extra map[string]string) {
	if len(w.Tensors) == 0 {
		return
	}
	text, err := json.Marshal(w)
	if err != nil {
		panic(fmt.Sprintf("tensors: weights that are no JSON: %v", err))
	}
	extra[WeightsExtra] = string(text)
}

// LoadWeights returns what SaveWeights recorded; nil if it recorded nothing.
func LoadWeights(extra map[string]string) (*program.Weights, error) {
	text := extra[WeightsExtra]
	if text == "" {
		return nil, nil
	}
	w := &program.Weights{}
	if err := json.Unmarshal([]byte(text), w); err != nil {
		return nil, badWeights("%v", err)
	}
	for i := range w.Tensors {
		if len(w.Tensors[i].Shares) == 0 {
			return nil, badWeights("tensor %s has no share", w.Tensors[i].Name)
		}
	}
	return w, nil
}

func badWeights(format string, args ...any) error {
	return &ckpt.InputError{Msg: "checkpoint: its record of the published tensors is wrong: " +
		fmt.Sprintf(format, args...)}
}

// PublishedFile returns the model of a checkpoint as a file in Hugging Face's layout, as Stores.Published does. f is
// the checkpoint's ModelFile, which must stay open. The tensors have its type.
func PublishedFile(f *ckpt.File, w *program.Weights) (ckpt.Content, error) {
	has := map[string]ckpt.Tensor{}
	for _, t := range f.Tensors() {
		has[t.Name] = t
	}
	all := publishedLayers(w, func(param string) (n int) {
		for has[layerName(param, n)].DType != "" {
			n++
			if !strings.Contains(param, "{layer}") {
				break
			}
		}
		return n
	})
	out := ckpt.Content{Metadata: map[string]string{"format": "pt"}}
	for i := range all {
		t := &all[i]
		to := ckpt.Tensor{Name: t.name, Shape: t.Shape}
		elems := int64(0)
		for j := range t.Shares {
			saved := has[layerName(t.Shares[j].Param, t.layer)]
			if err := checkShare(t, &t.Shares[j], saved, to.DType); err != nil {
				return ckpt.Content{}, err
			}
			to.DType = saved.DType
			elems += int64(t.Shares[j].Rows[1]-t.Shares[j].Rows[0]) * savedRow(saved)
		}
		if want := int64(publishedElems(t.Published)); elems != want {
			return ckpt.Content{}, badWeights("tensor %s has %d elements, and its shares %d", t.name, want, elems)
		}
		out.Tensors = append(out.Tensors, to)
	}
	if missing := slices.IndexFunc(w.Tensors, func(p program.Published) bool {
		return has[layerName(p.Shares[0].Param, 0)].DType == ""
	}); missing >= 0 {
		return ckpt.Content{}, badWeights("the checkpoint has no tensor %s", layerName(
			w.Tensors[missing].Shares[0].Param, 0))
	}
	out.Fill = func(i int, w io.Writer) error {
		if out.Tensors[i].DType == ckpt.F64 {
			return fillPublished[float64](f, &all[i], w)
		}
		return fillPublished[float32](f, &all[i], w)
	}
	return out, nil
}

func layerName(param string, layer int) string {
	return strings.ReplaceAll(param, "{layer}", strconv.Itoa(layer))
}

// savedRow returns the number of elements with one index of the first dim.
func savedRow(t ckpt.Tensor) int64 {
	if len(t.Shape) == 0 || t.Shape[0] == 0 {
		return t.Elems()
	}
	return t.Elems() / t.Shape[0]
}

// checkShare checks that a share of a published tensor lies in the tensor, and that the checkpoint has it. want is the
// type of the shares before it, if there are some.
func checkShare(t *publishedTensor, s *program.Share, saved ckpt.Tensor, want ckpt.DType) error {
	bad := func(format string, args ...any) error {
		return badWeights("tensor %s: %s: %s", t.name, layerName(s.Param, t.layer), fmt.Sprintf(format, args...))
	}
	shape := saved.Shape
	if len(shape) == 0 {
		shape = []int64{1}
	}
	switch {
	case saved.DType == "":
		return bad("the checkpoint does not have it")
	case saved.DType != ckpt.F32 && saved.DType != ckpt.F64 || want != "" && saved.DType != want:
		return bad("it has the type %s", saved.DType)
	case len(s.Strides) > len(shape) || len(s.Strides) < len(saved.Shape):
		return bad("its shape is %v", saved.Shape)
	case s.Rows[0] < 0 || s.Rows[1] < s.Rows[0] || int64(s.Rows[1]) > shape[0]:
		return bad("it has rows %v, and its shape is %v", s.Rows, saved.Shape)
	}
	last := s.Offset
	for d, stride := range s.Strides {
		n := int(shape[d])
		if d == 0 {
			n = s.Rows[1] - s.Rows[0]
		}
		last += stride * max(0, n-1)
		if stride < 0 {
			return bad("its strides are %v", s.Strides)
		}
	}
	if s.Offset < 0 || last >= publishedElems(t.Published) && saved.Elems() > 0 {
		return bad("its elements %d to %d are not in the tensor, whose shape is %v", s.Offset, last, t.Shape)
	}
	return nil
}

// fillPublished writes a published tensor, read from the tensors of a checkpoint.
func fillPublished[F Float](f *ckpt.File, t *publishedTensor, w io.Writer) error {
	out := make([]F, publishedElems(t.Published))
	var buf [BlockElems]F
	for i := range t.Shares {
		s := &t.Shares[i]
		saved, file, err := f.Tensor(layerName(s.Param, t.layer))
		if err != nil {
			return err
		}
		size := func(d int) int { return int(saved.Shape[d]) }
		row, run := int(savedRow(saved)), 1
		if len(saved.Shape) > 0 {
			run = size(len(saved.Shape) - 1)
		}
		first, n := int64(s.Rows[0]*row), (s.Rows[1]-s.Rows[0])*row
		for at := 0; at < n; at += BlockElems {
			part := buf[:min(BlockElems, n-at)]
			if err := ckpt.ReadFloats(file, saved.DType, first+int64(at), part); err != nil {
				return err
			}
			for done := 0; done < len(part); {
				pub, step := publishedAt(s, size, at+done)
				end := min(len(part), done+run-(at+done)%run)
				for ; done < end; done++ {
					out[pub] = part[done]
					pub += step
				}
			}
		}
	}
	return ckpt.WriteFloats(w, out)
}
