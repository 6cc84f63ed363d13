package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/tensors"
)

// publishedBigram is bigram with a layout of its weights: w lies transposed, and b in two tensors.
func publishedBigram[F tensors.Float](dp int) *rank.Program {
	p := bigram[F](dp, 0)
	p.Weights = Weights{
		Family: "bigram", Config: `{"model_type": "bigram"}`,
		Tensors: []Published{
			{Name: "m.out.weight", Shape: []int64{vocab, vocab},
				Shares: []Share{{Param: "w", Rows: [2]int{0, vocab}, Strides: []int{1, vocab}}}},
			{Name: "m.first.bias", Shape: []int64{3},
				Shares: []Share{{Param: "b", Rows: [2]int{0, 3}, Strides: []int{1}}}},
			{Name: "m.rest.bias", Shape: []int64{1, vocab - 3},
				Shares: []Share{{Param: "b", Rows: [2]int{3, vocab}, Strides: []int{1}}}},
		},
		Spellings: [][2]string{{"m.", ""}, {".bias", ".beta"}},
		Tied:      [][2]string{{"m.tied.weight", "m.out.weight"}},
		Ignored:   []string{"*.mask"},
	}
	return p
}

// numbers reads a tensor of a folder.
func numbers(t *testing.T, dir, name string) []float64 {
	t.Helper()
	w, err := ckpt.OpenWeights(dir)
	must(t, err)
	defer w.Close()
	x, r, err := w.Tensor(name)
	must(t, err)
	out := make([]float64, x.Elems())
	must(t, ckpt.ReadFloats(r, x.DType, 0, out))
	return out
}

func TestExportAndBack(t *testing.T) {
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "new", "folder")
	_, err := train(t, publishedBigram[float64](2), dir)
	must(t, err)
	before := tree(t, dir)
	res, err := train(t, publishedBigram[float64](2), dir, Export(out))
	if err != nil || res.Export != out || res.Steps != 12 {
		t.Fatalf("%+v, %v", res, err)
	}
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Errorf("the run's folder has changed:\n%s\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	checkpoint := filepath.Join(dir, "checkpoints", "step-00000012")
	w, turned := numbers(t, checkpoint, "w"), numbers(t, out, "m.out.weight")
	for i := range w {
		if turned[i%vocab*vocab+i/vocab] != w[i] {
			t.Fatalf("element %d of w is not where it is to be", i)
		}
	}
	if b := slices.Concat(numbers(t, out, "m.first.bias"), numbers(t, out, "m.rest.bias")); !slices.Equal(b,
		numbers(t, checkpoint, "b")) {
		t.Errorf("b is %v", b)
	}
	if text, err := os.ReadFile(filepath.Join(out, "config.json")); err != nil ||
		string(text) != `{"model_type": "bigram"}` {
		t.Errorf("config.json is %s, %v", text, err)
	}

	// Training goes on from either folder alike, on another plan too.
	ours, err := train(t, publishedBigram[float64](1), t.TempDir(), Set("train.init", checkpoint),
		Set("train.steps", 2))
	must(t, err)
	for _, dp := range []int{1, 4} {
		theirs, err := train(t, publishedBigram[float64](dp), t.TempDir(), Set("train.init", out),
			Set("train.steps", 2))
		if err != nil || math.Abs(theirs.Loss-ours.Loss) > 1e-12 {
			t.Errorf("dp %d from the exported folder: loss %v, %v; from the checkpoint %v", dp, theirs.Loss,
				err, ours.Loss)
		}
	}
	_, err = train(t, publishedBigram[float64](1), dir, Export(out))
	wantExit(t, err, exit.Input, "--export", "is not empty (it has config.json); nothing is overwritten")
	_, err = train(t, publishedBigram[float64](1), t.TempDir(), Export(filepath.Join(dir, "x")))
	wantExit(t, err, exit.Input, "--export: there is no checkpoint in ", "--resume never")
	_, err = train(t, bigram[float64](1, 0), dir, Export(filepath.Join(dir, "x")))
	wantExit(t, err, exit.Cannot, "--export: not supported for this model: the program knows only planc's own layout")
}

// A checkpoint has what is needed to write the files that the program exports, without the program.
func TestExportWithoutTheProgram(t *testing.T) {
	compare := func(p *rank.Program, kind string) {
		t.Helper()
		dir, out, same := t.TempDir(), filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "same")
		p.Weights.Config = `{"model_type": "bigram", "torch_dtype": "float32"}`
		res, err := train(t, p, dir, Set("train.steps", 2))
		must(t, err)
		_, err = train(t, p, dir, Export(out), ExportType(kind))
		must(t, err)
		c, err := ckpt.Open(res.Checkpoint)
		must(t, err)
		w, err := tensors.LoadWeights(c.Manifest.Extra)
		must(t, err)
		f, err := c.File(tensors.ModelFile)
		must(t, err)
		defer f.Close()
		content, err := tensors.PublishedFile(f, w)
		must(t, err)
		content, config := tensors.Exported(content, w.Config, kind)
		must(t, ckpt.Export(same, content, ckpt.ExportLimit, map[string][]byte{"config.json": config}))
		for _, name := range []string{"model.safetensors", "config.json"} {
			a, err := os.ReadFile(filepath.Join(out, name))
			must(t, err)
			b, err := os.ReadFile(filepath.Join(same, name))
			must(t, err)
			if !bytes.Equal(a, b) {
				t.Errorf("%s: the program's %s has %d bytes, and the other has others, %d", kind, name, len(a), len(b))
			}
		}
	}
	for _, kind := range []string{"", "bf16", "fp16", "fp32"} {
		compare(publishedBigram[float32](2), kind)
		compare(publishedBigram[float64](1), kind)
	}
}

// A record of the published tensors that contradicts the checkpoint is refused.
func TestWrongRecordOfPublishedTensors(t *testing.T) {
	p := publishedBigram[float64](1)
	res, err := train(t, p, t.TempDir(), Set("train.steps", 1))
	must(t, err)
	c, err := ckpt.Open(res.Checkpoint)
	must(t, err)
	f, err := c.File(tensors.ModelFile)
	must(t, err)
	defer f.Close()
	for want, change := range map[string]func(first *Published){
		"the checkpoint has no tensor x":  func(x *Published) { x.Shares[0].Param = "x" },
		"are not in the tensor":           func(x *Published) { x.Shares[0].Offset = 1 },
		"its strides are [-1 1]":          func(x *Published) { x.Shares[0].Strides = []int{-1, 1} },
		"its shape is":                    func(x *Published) { x.Shares[0].Strides = []int{1} },
		"it has rows [0 1000]":            func(x *Published) { x.Shares[0].Rows[1] = 1000 },
		"elements, and its shares":        func(x *Published) { x.Shares[0].Rows[1]-- },
		"the checkpoint does not have it": func(x *Published) { x.Shares = append(x.Shares, Share{Param: "y"}) },
	} {
		w, err := tensors.LoadWeights(c.Manifest.Extra)
		must(t, err)
		change(&w.Tensors[0])
		_, err = tensors.PublishedFile(f, w)
		if bad := (*ckpt.InputError)(nil); !errors.As(err, &bad) || !strings.Contains(bad.Msg, want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, text := range []string{"{", `{"Tensors": [{"Name": "x"}]}`} {
		_, err := tensors.LoadWeights(map[string]string{tensors.WeightsExtra: text})
		if bad := (*ckpt.InputError)(nil); !errors.As(err, &bad) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// An export that is asked to stop leaves nothing behind.
func TestStoppedExport(t *testing.T) {
	dir := t.TempDir()
	_, err := train(t, publishedBigram[float32](1), dir, Set("train.steps", 2))
	must(t, err)
	before := tree(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Run(ctx, publishedBigram[float32](1), Dir(dir), Export(filepath.Join(dir, "out")),
		Logger(slog.New(slog.DiscardHandler)))
	wantExit(t, err, exit.OnRequest)
	if want := "checkpoint: cannot write " + filepath.Join(dir, "out") +
		": model.safetensors: stopped on request"; err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Errorf("the folder was\n%s\nand is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// tensorsFile writes tensors of zeros.
func tensorsFile(t *testing.T, path string, list ...ckpt.Tensor) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	w, err := ckpt.NewWriter(f, list, nil)
	must(t, err)
	for _, x := range list {
		_, err := w.Write(make([]byte, x.Bytes()))
		must(t, err)
	}
	must(t, w.Close())
	must(t, f.Close())
}

func TestPretrainedMessages(t *testing.T) {
	square, first, rest := []int64{vocab, vocab}, []int64{3}, []int64{1, vocab - 3}
	whole := []ckpt.Tensor{{Name: "m.out.weight", DType: "F32", Shape: square}, {Name: "m.first.bias", DType: "BF16",
		Shape: first},
		{Name: "m.rest.bias", DType: "F16", Shape: rest}}
	change := func(i int, x ckpt.Tensor) []ckpt.Tensor {
		return append(append(slices.Clone(whole[:i]), x), whole[i+1:]...)
	}
	for name, c := range map[string]struct {
		Parts []ckpt.Tensor
		want  string // "" for none
	}{
		"whole": {whole, ""},
		"other names": {[]ckpt.Tensor{{Name: "out.weight", DType: "F32", Shape: square}, {Name: "first.beta",
			DType: "F64", Shape: first}, {Name: "m.rest.beta", DType: "F32", Shape: rest}, {Name: "m.0.mask",
			DType: "BOOL", Shape: first}}, ""},
		"missing": {whole[1:2], "tensors of the model are missing: m.out.weight, m.rest.bias"},
		"shape": {change(0, ckpt.Tensor{Name: "m.out.weight", DType: "F32", Shape: rest}),
			"model.safetensors: tensor m.out.weight has shape [1 8], but the model needs [11 11]"},
		"type": {change(1, ckpt.Tensor{Name: "m.first.bias", DType: "I8", Shape: first}),
			"tensor m.first.bias: checkpoint: elements of type I8 cannot be read as numbers"},
		"extra": {append(slices.Clone(whole), ckpt.Tensor{Name: "m.more", DType: "F32"}),
			"it has tensors that the program does not have: m.more; it is of another model"},
		"another": {[]ckpt.Tensor{{Name: "x", DType: "F32"}},
			"it has none of the model's tensors; it has x; expected are planc's own, such as w, or those of bigram, " +
				"such as m.out.weight"},
		"ours, extra": {[]ckpt.Tensor{{Name: "w", DType: "F32", Shape: square}, {Name: "y", DType: "F32"}},
			"it has tensors that the program does not have: y"},
	} {
		dir := t.TempDir()
		tensorsFile(t, filepath.Join(dir, "model.safetensors"), c.Parts...)
		_, err := train(t, publishedBigram[float32](1), t.TempDir(), Set("train.init", dir), Set("train.steps", 1))
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		t.Run(name, func(t *testing.T) { wantExit(t, err, exit.Input, "train.init "+dir, c.want) })
	}
}

// A file may hold the head of a tied model too. It must be the embedding: transformers trains both where it is another.
func TestTiedHeadInFile(t *testing.T) {
	square, bias := []int64{vocab, vocab}, []ckpt.Tensor{{Name: "first.beta", DType: "F32", Shape: []int64{3}},
		{Name: "rest.beta", DType: "F32", Shape: []int64{1, vocab - 3}}}
	for _, c := range []struct {
		name  string
		dtype ckpt.DType
		shape []int64
		at    int // byte of the head that is not 0; -1 for none
		want  string
	}{
		{"tied.weight", "F32", square, -1, ""},
		{"m.tied.weight", "F64", square, -1, ""},
		{"tied.weight", "F32", square, 4*vocab*vocab - 1,
			"tied.weight differs from out.weight, but the model has tie_word_embeddings: true, so that both are one " +
				"tensor; to train both, set tie_word_embeddings to false in the model's config.json and compile again"},
		{"tied.weight", "F32", square, 2, "tied.weight differs from out.weight"},
		{"tied.weight", "F32", []int64{vocab, 1}, -1, "tied.weight differs from out.weight"},
	} {
		dir := t.TempDir()
		head := ckpt.Tensor{Name: c.name, DType: c.dtype, Shape: c.shape}
		file, err := os.Create(filepath.Join(dir, "model.safetensors"))
		must(t, err)
		list := append([]ckpt.Tensor{{Name: "out.weight", DType: "F32", Shape: square}, head}, bias...)
		w, err := ckpt.NewWriter(file, list, nil)
		must(t, err)
		for _, x := range list {
			b := make([]byte, x.Bytes())
			if x.Name == c.name && c.at >= 0 {
				b[c.at] = 0x3f
			}
			_, err := w.Write(b)
			must(t, err)
		}
		must(t, w.Close())
		must(t, file.Close())
		_, err = train(t, publishedBigram[float32](1), t.TempDir(), Set("train.init", dir), Set("train.steps", 1))
		if c.want == "" {
			if err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		wantExit(t, err, exit.Input, "train.init "+dir, c.want)
	}
}

// Files that are no safetensors, or end early.
func TestDamagedPretrained(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "model.safetensors: not a valid safetensors file: it has only 0 bytes",
		"PK\x03\x04\x00\x00\x00\x00": "model.safetensors: not a valid safetensors file: it is truncated",
		"\x02\x00\x00\x00\x00\x00\x00\x00[]": "model.safetensors: not a valid safetensors file: its header does not " +
			"begin with {",
	} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), []byte(text), 0o666))
		_, err := train(t, publishedBigram[float32](1), t.TempDir(), Set("train.init", dir), Set("train.steps", 1))
		wantExit(t, err, exit.Input, "train.init: checkpoint: "+dir, want)
	}
}

// Exports that take more than a file's limit are shards with an index, and read back.
func TestExportInShards(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	c := ckpt.Content{}
	for _, name := range []string{"m.out.weight", "m.first.bias", "m.rest.bias"} {
		c.Tensors = append(c.Tensors, ckpt.Tensor{Name: name, DType: ckpt.F64, Shape: []int64{2}})
	}
	c.Fill = func(i int, w io.Writer) error { return ckpt.WriteFloats(w, []float64{float64(i), 7}) }
	must(t, ckpt.Export(dir, c, 32, map[string][]byte{"config.json": nil}))
	var names []string
	list, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	want := "config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the folder has %s, want %s", got, want)
	}
	if x := numbers(t, dir, "m.rest.bias"); !slices.Equal(x, []float64{2, 7}) {
		t.Errorf("the last tensor is %v", x)
	}
	text, err := os.ReadFile(filepath.Join(dir, "model.safetensors.index.json"))
	must(t, err)
	var index struct {
		Metadata struct {
			Total int `json:"total_size"`
		}
		Map map[string]string `json:"weight_map"`
	}
	must(t, json.Unmarshal(text, &index))
	if index.Metadata.Total != 48 || index.Map["m.first.bias"] != "model-00001-of-00002.safetensors" ||
		len(index.Map) != 3 {
		t.Errorf("the index is %s", text)
	}
}

// An export in 16 bits has the numbers of the checkpoint, rounded to nearest, and its config.json says so. A number
// that the type does not have is refused, and leaves nothing.
func TestExportIn16Bits(t *testing.T) {
	dir := t.TempDir()
	checkpointOf := func(p *rank.Program) string {
		p.Weights.Config = `{"model_type": "bigram", "torch_dtype": "float32"}`
		res, err := train(t, p, dir, Resume("never"))
		must(t, err)
		return res.Checkpoint
	}
	for name, round := range map[string]func(float32) float32{"bf16": num.RoundBF16, "fp16": num.RoundF16} {
		p := publishedBigram[float32](2)
		checkpoint := checkpointOf(p)
		out := filepath.Join(t.TempDir(), "out")
		_, err := train(t, p, dir, Export(out), ExportType(name))
		must(t, err)
		w, turned := numbers(t, checkpoint, "w"), numbers(t, out, "m.out.weight")
		for i := range w {
			if want := float64(round(float32(w[i]))); turned[i%vocab*vocab+i/vocab] != want {
				t.Fatalf("%s: element %d is %v, want %v", name, i, turned[i%vocab*vocab+i/vocab], want)
			}
		}
		want := map[string]string{"bf16": "bfloat16", "fp16": "float16"}[name]
		config, err := os.ReadFile(filepath.Join(out, "config.json"))
		if err != nil || string(config) != `{"model_type": "bigram", "torch_dtype": "`+want+`"}` {
			t.Errorf("%s: config.json is %s, %v", name, config, err)
		}
		if info, err := os.Stat(filepath.Join(out, "model.safetensors")); err != nil || info.Size() > 1000 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	p := publishedBigram[float64](1)
	p.Weights.Config = "{}"
	out := filepath.Join(dir, "large")
	_, err := train(t, p, dir, Resume("never"), Set("train.optimizer.lr", 1e6), Set("train.schedule.warmup", 0),
		Set("train.schedule.kind", "constant"), Set("train.steps", 1))
	must(t, err)
	_, err = train(t, p, dir, Export(out), ExportType("fp16"))
	wantExit(t, err, exit.Input, "element 0 of tensor m.out.weight is ", ", which is too large for F16: export in "+
		"another type")
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("the folder of a refused export: %v", err)
	}
}
