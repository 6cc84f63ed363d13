package spec_test

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
)

// rounder are the models whose papers give a rounder number than their shapes have: by how much it is off, at most.
var rounder = map[string]float64{"gpt3-350m": 0.02, "opt-350m": 0.06}

// Every model of the catalogue loads, and has the parameters that were published, by formula and in its graph.
func TestCatalogue(t *testing.T) {
	names := spec.ModelNames()
	if len(names) < 80 {
		t.Errorf("the catalogue has %d models", len(names))
	}
	for _, name := range names {
		c, err := spec.LoadModel(name, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		info, err := spec.ModelInfo(name)
		if err != nil || info.Name != name || info.Family != c.Family || c.Name != name {
			t.Errorf("%s: %+v, %v; the model is %v", name, info, err, c)
		}
		length := 16
		if c.Family == spec.ViT {
			length = c.MaxPositions
		}
		m := zoo.Build(name, *c, zoo.Options{SeqLen: length, Batch: 1, Elem: ir.F32})
		if built := m.Params(); c.Params() != info.Params || built != info.Params {
			t.Errorf("%s: %d parameters by formula, %d in the graph, want %d", name, c.Params(), built, info.Params)
		}
		if off, at := published(t, info); off > at {
			t.Errorf("%s has %d parameters, published are %s", name, info.Params, info.Published)
		}
	}
}

// published is how far a model is from its rounded number, as a part of it, and how far it may be.
func published(t *testing.T, m spec.Model) (off, at float64) {
	t.Helper()
	if m.Published == "" {
		return 0, 0
	}
	digits, unit := m.Published[:len(m.Published)-1],
		map[byte]float64{'M': 1e6, 'B': 1e9}[m.Published[len(m.Published)-1]]
	want, err := strconv.ParseFloat(digits, 64)
	if err != nil || unit == 0 {
		t.Fatalf("%s: _published %q is not a number of M or B", m.Name, m.Published)
	}
	last := 1.0 // of the last digit that is not 0
	if _, fraction, ok := strings.Cut(digits, "."); ok {
		last = math.Pow10(-len(fraction))
	} else {
		last = math.Pow10(len(digits) - len(strings.TrimRight(digits, "0")))
	}
	at = last / 2 / want
	if r, ok := rounder[m.Name]; ok {
		at = r
	}
	return math.Abs(float64(m.Params)/unit-want) / want, at + 1e-12
}

// Every row says where its figures are from and since when, in words, and is found by names that are its own.
func TestCatalogueCitesItsSources(t *testing.T) {
	taken := slices.Clone(spec.ModelNames())
	for _, name := range spec.ModelNames() {
		m, err := spec.ModelInfo(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Source) < 10 || strings.Contains(m.Source, "://") ||
			!regexp.MustCompile(`^20\d\d-\d\d(-\d\d)?$`).MatchString(m.Date) {
			t.Errorf("%s: source %q, date %q", name, m.Source, m.Date)
		}
		for _, alias := range m.Aliases {
			if slices.Contains(taken, alias) || alias != strings.ToLower(alias) {
				t.Errorf("%s: alias %s is taken, or not in lower case", name, alias)
			}
			taken = append(taken, alias)
			if c, err := spec.LoadModel(strings.ToUpper(alias), nil); err != nil || c.Name != name {
				t.Errorf("%s loads as %v, %v; want %s", strings.ToUpper(alias), c, err, name)
			}
		}
	}
}

// Names are sorted as people read them: a series by size.
func TestModelNamesBySize(t *testing.T) {
	names := spec.ModelNames()
	for _, pair := range [][2]string{{"gpt2-774m", "gpt2-1558m"}, {"bloom-560m", "bloom-176b"},
		{"gpt2-1558m", "gpt3-125m"}, {"llama3-70b", "llama3.1-8b"}} {
		if a, b := slices.Index(names, pair[0]), slices.Index(names, pair[1]); a < 0 || b < 0 || a > b {
			t.Errorf("%s is %d, %s is %d", pair[0], a, pair[1], b)
		}
	}
}

// FuzzLoadModel: whatever a config.json holds, it is read or refused, never a panic; what is read has a graph's count.
func FuzzLoadModel(f *testing.F) {
	for _, name := range []string{"gpt2-124m", "opt-350m", "bloom-560m", "pythia-70m", "llama3.2-1b", "mistral-7b",
		"qwen2.5-0.5b", "qwen3-0.6b",
		"phi3-mini", "gemma2-2b", "gemma3-4b", "bert-base", "vit-base"} {
		data, err := spec.ModelFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add(`{"model_type": "gemma3", "text_config": {"rope_parameters": {"full_attention": {"rope_type": "yarn", ` +
		`"factor": 2}}, "layer_types": ["sliding_attention"]}}`)
	f.Add(`{"model_type": "phi3", "rope_scaling": {"type": "su", "short_factor": [1], "long_factor": []}, ` +
		`"original_max_position_embeddings": 1}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := spec.LoadModel("m/config.json", func(string) ([]byte, error) { return []byte(text), nil })
		if err != nil {
			return
		}
		if c.Params() <= 0 || c.RopeScaling.Text() != "" && c.HeadDim == 0 {
			t.Errorf("%v", c)
		}
		if _, err := ir.ParseRope(c.RopeScaling.Text()); err != nil {
			t.Errorf("%v: %v", c, err)
		}
		second, err := spec.LoadModel("m/config.json", func(string) ([]byte, error) { return c.HF(ir.F32), nil })
		if err != nil || second.Params() != c.Params() {
			t.Errorf("%s\nis written\n%s\nwhich is %v, %v", text, c.HF(ir.F32), second, err)
		}
	})
}
