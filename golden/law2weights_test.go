package golden_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/runtime/ckpt"
)

// ours are the fixture's tensors with a prefix ("", "grad." or "final.") under planc's names and in its order of
// dims: Hugging Face's Linear weights are [out, in], planc's [in, out], as its Conv1D's are.
func (f *fixture) ours(prefix string) map[string][]float64 {
	out := map[string][]float64{}
	get := func(name string) []float64 { return f.values(prefix + name) }
	if f.config.Family == "gpt2" {
		f.gpt2(out, get)
	} else {
		f.llama(out, get)
	}
	return out
}

func (f *fixture) gpt2(out map[string][]float64, get func(string) []float64) {
	h := f.config.Hidden
	out["embed.wte"], out["embed.wpe"] = get("transformer.wte.weight"), get("transformer.wpe.weight")
	out["head.ln.gain"], out["head.ln.bias"] = get("transformer.ln_f.weight"), get("transformer.ln_f.bias")
	if !f.config.Tied {
		out["head.lm_head"] = get("lm_head.weight")
	}
	for l := range f.config.Layers {
		from, to := fmt.Sprintf("transformer.h.%d.", l), fmt.Sprintf("block.%d.", l)
		for theirs, ours := range map[string]string{"ln_1.weight": "ln1.gain", "ln_1.bias": "ln1.bias", "ln_2.weight": "ln2.gain",
			"ln_2.bias": "ln2.bias", "attn.c_proj.weight": "attn.o", "attn.c_proj.bias": "attn.o_bias", "mlp.c_fc.weight": "mlp.up",
			"mlp.c_fc.bias": "mlp.up_bias", "mlp.c_proj.weight": "mlp.down", "mlp.c_proj.bias": "mlp.down_bias"} {
			out[to+ours] = get(from + theirs)
		}
		w, b := get(from+"attn.c_attn.weight"), get(from+"attn.c_attn.bias")
		for i, name := range []string{"q", "k", "v"} {
			out[to+"attn."+name] = columns(w, 3*h, i*h, h)
			out[to+"attn."+name+"_bias"] = b[i*h : (i+1)*h]
		}
	}
}

func (f *fixture) llama(out map[string][]float64, get func(string) []float64) {
	c := f.config
	h, q := c.Hidden, c.Heads*c.HeadDim
	out["embed.wte"], out["head.lm_head"] = get("model.embed_tokens.weight"), get("lm_head.weight")
	out["head.ln.gain"] = get("model.norm.weight")
	for l := range c.Layers {
		from, to := fmt.Sprintf("model.layers.%d.", l), fmt.Sprintf("block.%d.", l)
		out[to+"ln1.gain"], out[to+"ln2.gain"] = get(from+"input_layernorm.weight"), get(from+"post_attention_layernorm.weight")
		for theirs, ours := range map[string]struct {
			name string
			in   int
		}{"self_attn.q_proj": {"attn.q", h}, "self_attn.k_proj": {"attn.k", h}, "self_attn.v_proj": {"attn.v", h}, "self_attn.o_proj": {"attn.o", q},
			"mlp.gate_proj": {"mlp.gate", h}, "mlp.up_proj": {"mlp.up", h}, "mlp.down_proj": {"mlp.down", c.FFN}} {
			out[to+ours.name] = transposed(get(from+theirs+".weight"), ours.in)
		}
	}
}

// columns takes n columns from the first on of a matrix of width columns.
func columns(x []float64, width, first, n int) []float64 {
	var out []float64
	for at := 0; at < len(x); at += width {
		out = append(out, x[at+first:at+first+n]...)
	}
	return out
}

// transposed turns a matrix of cols columns.
func transposed(x []float64, cols int) []float64 {
	rows := len(x) / cols
	out := make([]float64, len(x))
	for i := range rows {
		for j := range cols {
			out[j*rows+i] = x[i*cols+j]
		}
	}
	return out
}

// write leaves the fixture's weights and batch in a folder, as the generated programs read them.
func (f *fixture) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "weights"), 0o755); err != nil {
		t.Fatal(err)
	}
	weights := f.ours("")
	names := slices.Sorted(maps.Keys(weights))
	var tensors []ckpt.Tensor
	for _, n := range names {
		tensors = append(tensors, ckpt.Tensor{Name: n, DType: "F64", Shape: f.shape(n)})
	}
	file, err := os.Create(filepath.Join(dir, "weights", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := ckpt.NewWriter(file, tensors, nil)
	for _, n := range names {
		if err == nil {
			err = ckpt.WriteFloats(w, weights[n])
		}
	}
	for _, c := range []io.Closer{w, file} {
		if err == nil {
			err = c.Close()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string][][]int32{"Tokens": f.rowsOf("tokens", nil), "Labels": f.rowsOf("targets", f.values("mask"))})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "batch.json"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// shape is that of a parameter in planc's model.
func (f *fixture) shape(name string) []int64 {
	for _, s := range zoo.Build("x", *f.config, zoo.Options{SeqLen: f.seq, Batch: 1, Elem: ir.F64}).Segments {
		for _, w := range s.Forward.Weights() {
			for l := range s.Count {
				if name != s.Name+"."+w.Name && name != fmt.Sprintf("%s.%d.%s", s.Name, l, w.Name) {
					continue
				}
				var shape []int64
				for _, d := range w.Type.Dims {
					shape = append(shape, int64(d.Size))
				}
				return shape
			}
		}
	}
	f.t.Fatalf("planc's model has no %s", name)
	return nil
}

// rowsOf reads an integer tensor by rows; where mask is 0 it is -1.
func (f *fixture) rowsOf(name string, mask []float64) [][]int32 {
	f.t.Helper()
	x, r, err := f.file.Tensor(name)
	raw := make([]byte, x.Bytes())
	if err == nil {
		_, err = r.ReadAt(raw, 0)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	rows := make([][]int32, f.rows)
	for i := range f.rows * f.seq {
		v := int32(binary.LittleEndian.Uint64(raw[8*i:]))
		if mask != nil && mask[i] == 0 {
			v = -1
		}
		rows[i/f.seq] = append(rows[i/f.seq], v)
	}
	return rows
}
