package laws_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/ir/zoo/weights"
	rt "github.com/planc-dev/planc/runtime"
)

// Law 2 on a GPU: programs of fixtures in f64 are built as one binary, law2, together with PyTorch's numbers under
// planc's names, law2.json.

// check2Case is Law2Case of bench/gpu, where its fields are documented.
type check2Case struct {
	ID, Plan      string
	Losses, Norms []float64
	Valid, Norm   float64
	Grads, Params map[string][]float64
	Moved         map[string]float64
}

// check2Fixtures have together both kinds of norm, of positions and of activations, tied and untied heads, and KV
// heads shared by several query heads.
var check2Fixtures = []string{"gpt2-tiny", "llama-tiny"}

// check2Data is the folder of the programs' inputs, relative to their working directory.
const check2Data = "law2data"

// buildCheck2 builds the fixtures' programs in f64: with one rank, and with several if there are such plans.
func buildCheck2(t *testing.T, dir string, names []string, arch string) {
	t.Helper()
	files := map[string][]byte{"main.go": law2Main}
	var cases []check2Case
	var imports, table strings.Builder
	for _, name := range names {
		f := readFixture(t, name)
		f.dir = filepath.Join(dir, check2Data, name)
		if err := os.MkdirAll(f.dir, 0o777); err != nil {
			t.Fatal(err)
		}
		f.write()
		for i, p := range law2Plans[name] {
			if p.elem != ir.F64 {
				continue
			}
			c := law2Case{fmt.Sprintf("%s%d", strings.ReplaceAll(name, "-", ""), i), name, p}
			in := law2Input(t, c, f)
			in.Target = codegen.GPU
			src, err := codegen.Go(in)
			if err != nil {
				t.Fatal(err)
			}
			files[c.id+"/train.go"] = src
			for kernel, fatbin := range kernelsOf(t, in, arch) {
				files[path.Join(c.id, "kernels", kernel)] = fatbin
			}
			fmt.Fprintf(&imports, "\t%q\n", "planc.generated/law2/"+c.id)
			fmt.Fprintf(&table, "\t{%q, %q, %q, %v, %s.Run},\n", c.id, path.Join(check2Data, name), "out-"+c.id,
				zoo.Decodes(f.config.Family), c.id)
			cases = append(cases, f.check2(c))
		}
	}
	files["programs.go"] = []byte("package main\n\nimport (\n" + imports.String() +
		")\n\nvar programs = []program{\n" + table.String() + "}\n")
	r := build.Request{Files: files, Runtime: rt.Sources, CUDA: cuda.Sources, Module: "planc.generated/law2",
		Plain: true, Cache: t.TempDir(), Out: filepath.Join(dir, "law2")}
	if _, err := build.Build(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(cases)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "law2.json"), text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// check2 returns PyTorch's results for the fixture.
func (f *fixture) check2(c law2Case) check2Case {
	x := check2Case{ID: c.id, Plan: fmt.Sprintf("%s: dp %d tp %d zero %d, micro-batches of %d", c.fixture, c.dp, c.tp,
		c.zero, c.micro), Losses: f.values("steps.loss"), Norms: f.values("steps.grad_norm"),
		Valid: f.values("final_loss")[0], Norm: f.values("grad_norm")[0],
		Grads: f.ours(f.all("grad.")), Params: f.ours(f.all("final.")), Moved: map[string]float64{}}
	for name, start := range f.ours(f.all("")) {
		var moved float64
		for i, v := range x.Params[name] {
			moved += (v - start[i]) * (v - start[i])
		}
		x.Moved[name] = math.Sqrt(moved)
	}
	return x
}

// ours splits Hugging Face's tensors into planc's parameters; theirs is the inverse.
func (f *fixture) ours(theirs map[string][]float64) map[string][]float64 {
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
			from, ok := theirs[strings.Replace(pub.Name, "{layer}", fmt.Sprint(pub.From+layer), 1)]
			if !ok {
				continue
			}
			for _, s := range pub.Shares {
				name := strings.Replace(s.Param, "{layer}", fmt.Sprint(layer), 1)
				out[name] = share(out[name], s, dims[strings.Replace(s.Param, ".{layer}", "", 1)], from)
			}
		}
	}
	return out
}

// share copies a tensor's share into a parameter, which grows as needed; put is the inverse.
func share(to []float64, s ir.Share, dims []ir.Extent, from []float64) []float64 {
	row := 1
	for _, d := range dims[1:] {
		row *= d.Size
	}
	for i := s.Rows[0] * row; i < min(s.Rows[1], dims[0].Size)*row; i++ {
		at, rest := s.Offset, i-s.Rows[0]*row
		for k := len(dims) - 1; k >= 0; k-- {
			at += rest % dims[k].Size * s.Strides[k]
			rest /= dims[k].Size
		}
		for len(to) <= i {
			to = append(to, 0)
		}
		to[i] = from[at]
	}
	return to
}
