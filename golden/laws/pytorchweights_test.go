package laws_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/ir/zoo/weights"
	"github.com/planc-dev/planc/runtime/ckpt"
)

// fixture is one file of reference/testdata, with its model.
type fixture struct {
	t         *testing.T
	name      string
	config    *spec.Config
	rows, seq int
	file      *ckpt.File
	dir       string // input of the generated programs: weights/ and batch.json
}

func readFixture(t *testing.T, name string) *fixture {
	t.Helper()
	base := filepath.Join("..", "reference", "testdata", name)
	config, err := spec.LoadModel(base+".config.json", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	file, err := ckpt.OpenFile(base + ".safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	// The fixtures were generated without dropout, whatever their configuration says.
	if r, ok := law2Routing[name]; ok {
		config.Routing = r
	}
	config.DropEmbd, config.DropResid, config.DropAttn = 0, 0, 0
	f := &fixture{t: t, name: name, config: config, file: file, dir: t.TempDir()}
	mask, _, err := file.Tensor("mask")
	if err != nil {
		t.Fatal(err)
	}
	f.rows = int(mask.Shape[0])
	f.seq = config.MaxPositions
	if config.Family != spec.ViT {
		f.seq = int(mask.Shape[1])
	}
	config.Fit(f.seq)
	return f
}

func (f *fixture) model(elem ir.Elem) *ir.Model {
	return zoo.Build(f.name, *f.config, zoo.Options{SeqLen: f.seq, Batch: 1, Elem: elem})
}

// values reads a float tensor.
func (f *fixture) values(name string) []float64 {
	f.t.Helper()
	return floats(f.t, f.file, name)
}

func floats(t *testing.T, file *ckpt.File, name string) []float64 {
	t.Helper()
	x, r, err := file.Tensor(name)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, x.Elems())
	if err := ckpt.ReadFloats(r, x.DType, 0, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// weights returns the model's tensors, under Hugging Face's names.
func (f *fixture) weights() (list []ckpt.Tensor) {
	all := f.file.Tensors()
	for _, x := range all {
		if slices.ContainsFunc(all, func(y ckpt.Tensor) bool { return y.Name == "final."+x.Name }) {
			list = append(list, x)
		}
	}
	return list
}

// all returns the fixture's tensors of a kind, by the names of the weights: "" at the start, "grad.", "final.".
func (f *fixture) all(kind string) map[string][]float64 {
	out := map[string][]float64{}
	for _, x := range f.weights() {
		if f.has(kind + x.Name) { // tensors without a gradient have none
			out[x.Name] = f.values(kind + x.Name)
		}
	}
	return out
}

// theirs joins planc's parameters into Hugging Face's tensors.
func (f *fixture) theirs(ours map[string][]float64) map[string][]float64 {
	m := f.model(ir.F64)
	dims, layers := map[string][]ir.Extent{}, map[string]int{}
	for _, s := range m.Segments {
		for _, w := range s.Forward.Weights() {
			dims[s.Name+"."+w.Name], layers[s.Name+"."+w.Name] = w.Type.Dims, s.Count
		}
	}
	out := map[string][]float64{}
	for _, pub := range weights.Locate(m, f.config).Tensors {
		for layer := range layers[strings.Replace(pub.Shares[0].Param, ".{layer}", "", 1)] {
			at := func(name string) string { return strings.Replace(name, "{layer}", fmt.Sprint(layer), 1) }
			published := strings.Replace(pub.Name, "{layer}", fmt.Sprint(pub.From+layer), 1)
			size := int64(1)
			for _, n := range pub.Shape {
				size *= n
			}
			x := make([]float64, size)
			for _, s := range pub.Shares {
				put(x, s, dims[strings.Replace(s.Param, ".{layer}", "", 1)], ours[at(s.Param)])
			}
			out[published] = x
		}
	}
	return out
}

// put copies a parameter's share into a tensor.
func put(to []float64, s ir.Share, dims []ir.Extent, from []float64) {
	row := 1
	for _, d := range dims[1:] {
		row *= d.Size
	}
	for i := s.Rows[0] * row; i < min(s.Rows[1]*row, len(from)); i++ {
		at, rest := s.Offset, i-s.Rows[0]*row
		for k := len(dims) - 1; k >= 0; k-- {
			at += rest % dims[k].Size * s.Strides[k]
			rest /= dims[k].Size
		}
		to[at] = from[i]
	}
}

// write writes the fixture's weights and batch into its folder.
func (f *fixture) write() {
	f.t.Helper()
	f.writeWeights(filepath.Join(f.dir, "weights"))
	batch := map[string]any{"Labels": f.labels()}
	if f.has("pixels") {
		batch["Pixels"] = f.patches()
	} else {
		batch["Tokens"] = f.integers("tokens")
	}
	if f.has("types") {
		batch["Types"] = f.integers("types")
	}
	text, err := json.Marshal(batch)
	if err == nil {
		err = os.WriteFile(filepath.Join(f.dir, "batch.json"), text, 0o644)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) has(name string) bool {
	_, _, err := f.file.Tensor(name)
	return err == nil
}

// writeWeights writes the weights unchanged.
func (f *fixture) writeWeights(dir string) {
	f.t.Helper()
	c := ckpt.Content{Tensors: f.weights()}
	c.Fill = func(i int, w io.Writer) error {
		_, r, err := f.file.Tensor(c.Tensors[i].Name)
		if err == nil {
			_, err = io.Copy(w, r)
		}
		return err
	}
	if err := ckpt.Export(dir, c, 1<<40, nil); err != nil {
		f.t.Fatal(err)
	}
}

// integers reads an integer tensor by rows.
func (f *fixture) integers(name string) [][]int32 {
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
	n := int(x.Elems()) / f.rows
	for i := range f.rows * n {
		rows[i/n] = append(rows[i/n], int32(binary.LittleEndian.Uint64(raw[8*i:])))
	}
	return rows
}

// labels returns the targets, -1 for positions that the loss ignores. An image has its label at the first position.
func (f *fixture) labels() [][]int32 {
	rows, mask := f.integers("targets"), f.values("mask")
	n := len(rows[0])
	for i, m := range mask {
		if m == 0 {
			rows[i/n][i%n] = -1
		}
	}
	for i := range rows {
		for len(rows[i]) < f.seq {
			rows[i] = append(rows[i], -1)
		}
	}
	return rows
}

// patches cuts images [colour, row, column] into a program's input: nothing at the first position, then each patch
// row by row.
func (f *fixture) patches() [][]float32 {
	c, pixels := f.config, f.values("pixels")
	side := c.ImageSize / c.PatchSize
	var rows [][]float32
	for i := range f.rows {
		row := make([]float32, c.Channels*c.PatchSize*c.PatchSize)
		for patch := range side * side {
			for colour := range c.Channels {
				for y := range c.PatchSize {
					from := ((i*c.Channels+colour)*c.ImageSize+patch/side*c.PatchSize+y)*c.ImageSize +
						patch%side*c.PatchSize
					for _, v := range pixels[from : from+c.PatchSize] {
						row = append(row, float32(v))
					}
				}
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// sameWeights fails unless an exported folder contains the program's initial weights, bit for bit, and a config.json
// of the same model.
func (f *fixture) sameWeights(dir string, elem ir.Elem) {
	f.t.Helper()
	file, err := ckpt.OpenFile(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		f.t.Error(err)
		return
	}
	defer file.Close()
	want := f.weights()
	if got := file.Tensors(); len(got) != len(want) {
		f.t.Errorf("%s has %d tensors, want %d", dir, len(got), len(want))
	}
	for _, x := range want {
		got, _, err := file.Tensor(x.Name)
		if err != nil || got.DType != (map[ir.Elem]ckpt.DType{ir.F32: ckpt.F32, ir.F64: ckpt.F64}[elem]) ||
			!slices.Equal(got.Shape, x.Shape) {
			f.t.Errorf("%s: %+v, %v; want %+v", dir, got, err, x)
			continue
		}
		if !slices.Equal(floats(f.t, file, x.Name), f.values(x.Name)) {
			f.t.Errorf("%s: %s differs from the imported tensor", dir, x.Name)
		}
	}
	config, err := spec.LoadModel(filepath.Join(dir, "config.json"), os.ReadFile)
	if err != nil || config.Family != f.config.Family || config.String() != strings.Replace(f.config.String(),
		f.config.Name, config.Name, 1) {
		f.t.Errorf("%s: config.json has %v, %v; want %v", dir, config, err, f.config)
	}
}
