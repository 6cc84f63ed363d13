package laws_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo/weights"
	"github.com/planc-dev/planc/runtime/ckpt"
)

// Law 2 of drawn configurations: the loss of a fixed batch, with weights that follow from their names, equals
// transformers'. reference/reading.py makes the draws and their losses.

// reading is a file of reference/testdata/reading.
type reading struct {
	Family string
	Base   map[string]any
	Facts  map[string]any
	Draws  []struct {
		Set, Whole map[string]any
		Drop       []string
		Facts      map[string]any
	}
}

// readingCase is a drawn configuration that planc reads, with transformers' loss.
type readingCase struct {
	id, text  string
	config    *spec.Config
	loss, aux float64
}

// readingCases returns the base of a family and draws whose losses all differ, those with the most keys first, up to
// a maximum.
func readingCases(t *testing.T, path string, limit int) (cases []readingCase) {
	t.Helper()
	text, err := os.ReadFile(path)
	var r reading
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(r.Draws, func(a, b struct {
		Set, Whole map[string]any
		Drop       []string
		Facts      map[string]any
	}) int {
		return len(b.Set) + len(b.Drop) - len(a.Set) - len(a.Drop)
	})
	seen := map[float64]bool{}
	add := func(hf, facts map[string]any) {
		loss, ok := facts["loss"].(float64)
		if !ok || seen[loss] || len(cases) == limit {
			return
		}
		hf["model_type"] = r.Family
		text, err := json.Marshal(hf)
		if err != nil {
			t.Fatal(err)
		}
		c, err := spec.LoadModel("config.json", func(string) ([]byte, error) { return text, nil })
		if err != nil { // another test checks refusals
			return
		}
		seen[loss] = true
		aux, _ := facts["aux"].(float64)
		cases = append(cases, readingCase{fmt.Sprintf("%s%d", strings.ReplaceAll(r.Family, "_", ""), len(cases)),
			string(text), c, loss, aux})
	}
	add(maps.Clone(r.Base), r.Facts)
	for _, d := range r.Draws {
		hf := maps.Clone(r.Base)
		if d.Whole != nil {
			hf = maps.Clone(d.Whole)
		}
		for _, key := range d.Drop {
			delete(hf, key)
		}
		maps.Copy(hf, d.Set)
		add(hf, d.Facts)
	}
	return cases
}

// Sizes of the readings' batch.
const readingRows, readingSeq = 2, 12

// readingFixture writes the weights and batch of a case for law 2's programs.
func readingFixture(t *testing.T, c readingCase) *fixture {
	t.Helper()
	c.config.Fit(readingSeq)
	c.config.DropEmbd, c.config.DropResid, c.config.DropAttn = 0, 0, 0
	f := &fixture{t: t, name: c.id, config: c.config, rows: readingRows, seq: readingSeq, dir: t.TempDir()}
	var tensors []ckpt.Tensor
	m := f.model(ir.F64)
	for _, pub := range weights.Locate(m, c.config).Tensors {
		segment, _, _ := strings.Cut(pub.Shares[0].Param, ".")
		for layer := range layersOf(m, segment) {
			name := strings.ReplaceAll(pub.Name, "{layer}", strconv.Itoa(pub.From+layer))
			tensors = append(tensors, ckpt.Tensor{Name: name, DType: ckpt.F64, Shape: pub.Shape})
		}
	}
	content := ckpt.Content{Tensors: tensors, Fill: func(i int, w io.Writer) error {
		gain := 0.0
		if x := tensors[i]; !c.config.UnitNorm && len(x.Shape) == 1 && strings.HasSuffix(x.Name, ".weight") {
			gain = 1
		}
		return binary.Write(w, binary.LittleEndian, drawnWeight(tensors[i].Name, int(tensors[i].Elems()), gain))
	}}
	if err := ckpt.Export(filepath.Join(f.dir, "weights"), content, 1<<40, nil); err != nil {
		t.Fatal(err)
	}
	batch := map[string][][]int32{}
	fill := func(key string, size func(at int) int) {
		for row := range readingRows {
			x := make([]int32, readingSeq)
			for i := range x {
				x[i] = int32(size(row*readingSeq + i))
			}
			batch[key] = append(batch[key], x)
		}
	}
	fill("Tokens", func(at int) int { return (at*7 + 3) % c.config.Vocab })
	fill("Labels", func(at int) int { return (at*5 + 1) % c.config.Vocab })
	if c.config.TokenTypes > 0 {
		fill("Types", func(at int) int { return at / 5 % c.config.TokenTypes })
	}
	text, err := json.Marshal(batch)
	if err == nil {
		err = os.WriteFile(filepath.Join(f.dir, "batch.json"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func layersOf(m *ir.Model, segment string) int {
	i := slices.IndexFunc(m.Segments, func(s *ir.Segment) bool { return s.Name == segment })
	return m.Segments[i].Count
}

// drawnWeight returns the weights of reading.py: 20 bits of splitmix64 per element, between -1/2 and 1/2.
func drawnWeight(name string, n int, gain float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		z := (uint64(i) + uint64(crc32.ChecksumIEEE([]byte(name)))<<32 + 1) * 0x9E3779B97F4A7C15
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		z ^= z >> 31
		out[i] = float64(z>>44)/(1<<20) - 0.5 + gain
	}
	return out
}

// Drawn configurations have transformers' loss. Image models are not included, because their batch has another form;
// law 2's own fixtures include them.
func TestLawDrawnConfigurations(t *testing.T) {
	t.Parallel() // one test generates or runs code while another compiles
	files, err := filepath.Glob(filepath.Join("..", "reference", "testdata", "reading", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	limit := 1
	if harness.Long() {
		limit = 30
	}
	var all []readingCase
	var cases []law2Case
	fixtures, out := map[string]*fixture{}, t.TempDir()
	source := map[string][]byte{"main.go": law2Main}
	for _, path := range files {
		if filepath.Base(path) == spec.ViT+".json" {
			continue
		}
		for _, c := range readingCases(t, path, limit) {
			fixtures[c.id] = readingFixture(t, c)
			one := law2Case{c.id, c.id, one}
			source[c.id+"/train.go"] = law2Source(t, one, fixtures[c.id])
			all, cases = append(all, c), append(cases, one)
		}
	}
	source["programs.go"] = law2Table(cases, fixtures, out)
	worst := 0.0
	for i, line := range runModule(t, "law2", source) {
		var got law2Trace
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		c := all[i]
		if got.Err != "" {
			t.Errorf("%s %s: %s", c.id, c.text, got.Err)
			continue
		}
		// The loss was recorded with 12 digits, and auxiliary losses with 8.
		off := math.Abs(got.Losses[0]-c.loss) / c.loss
		worst = max(worst, off)
		if off > 1e-9 || math.Abs(got.Aux-c.aux) > 1e-6*c.aux {
			t.Errorf("%s %s: loss %v and %v, but transformers has %v and %v", c.id, c.text, got.Losses[0], got.Aux,
				c.loss, c.aux)
		}
	}
	t.Logf("%d configurations, the furthest loss is %.2g off", len(all), worst)
}
