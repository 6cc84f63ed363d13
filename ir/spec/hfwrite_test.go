package spec

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// The key bias of nanoGPT is written only if it is false, because transformers does not have it.
func TestBiasFreeReadsBack(t *testing.T) {
	for model, isWritten := range map[string]bool{"{model_type: gpt2}": false, "{model_type: gpt2, bias: true}": false,
		"{model_type: gpt2, bias: false}": true} {
		c := config(t, model, 16)
		text := c.HF(ir.F32)
		if got := bytes.Contains(text, []byte(`"bias": false`)); got != isWritten ||
			bytes.Contains(text, []byte(`"bias": true`)) {
			t.Errorf("%s is written as\n%s", model, text)
		}
		back, err := LoadModel("written/config.json", func(string) ([]byte, error) { return text, nil })
		if err != nil || back.BiasFreeNorm != isWritten || back.MLPBias == isWritten || back.Params() != c.Params() {
			t.Errorf("%s reads back as %+v, %v", model, back, err)
		}
	}
}

// What is written is read back as the same model, for the catalogue and for all models of the reference.
func TestHFReadsBack(t *testing.T) {
	names := ModelNames()
	fixtures, err := filepath.Glob("../../golden/reference/testdata/*.config.json")
	if err != nil || len(fixtures) < 3 {
		t.Fatalf("%d fixtures, %v", len(fixtures), err)
	}
	for _, name := range append(names, fixtures...) {
		c, err := LoadModel(name, os.ReadFile)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := c.HF(ir.F32)
		back, err := LoadModel("written/config.json", func(string) ([]byte, error) { return text, nil })
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		if bytes.Contains(text, []byte("rope_parameters")) {
			t.Errorf("%s is written in a spelling that transformers 4 does not read:\n%s", name, text)
		}
		back.Name, back.at, c.at, back.hf, c.hf = c.Name, nil, nil, nil, nil
		if !reflect.DeepEqual(back, c) {
			t.Errorf("%s reads back as\n%+v\nand was\n%+v\n%s", name, back, c, text)
		}
	}
}
