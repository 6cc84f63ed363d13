package ckpt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tensorFile is a file of one-byte tensors.
func tensorFile(t *testing.T, names ...string) []byte {
	t.Helper()
	var b strings.Builder
	var tensors []Tensor
	for _, name := range names {
		tensors = append(tensors, Tensor{name, U8, nil})
	}
	w, err := NewWriter(&b, tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(make([]byte, len(names)))
	return []byte(b.String())
}

func TestOpenWeights(t *testing.T) {
	ab, cd, e := string(tensorFile(t, "a", "b")), string(tensorFile(t, "c", "d")), string(tensorFile(t, "e"))
	tests := []struct {
		name  string
		files map[string]string
		want  string // tensors, or the error
	}{
		{"all", map[string]string{"2.safetensors": cd, "1.safetensors": ab, "config.json": "{}"}, "a b c d"},
		{"model alone", map[string]string{"model.safetensors": ab, "optimizer.safetensors": cd}, "a b"},
		{"index", map[string]string{indexName: `{"weight_map": {"c": "y.safetensors", "d": "y.safetensors", "a": ` +
			`"x.safetensors"}}`,
			"x.safetensors": ab, "y.safetensors": cd, "model.safetensors": e}, "a b c d"},
		{"file missing", map[string]string{indexName: `{"weight_map": {"c": "y.safetensors"}}`},
			"checkpoint: DIR/y.safetensors is missing"},
		{"file outside", map[string]string{indexName: `{"weight_map": {"c": "../y"}}`},
			`checkpoint: DIR/model.safetensors.index.json names the file "../y", which is not in its folder`},
		{"empty index", map[string]string{indexName: `{}`},
			"checkpoint: DIR/model.safetensors.index.json lists no files"},
		{"twice", map[string]string{"1.safetensors": ab, "2.safetensors": ab},
			"checkpoint: tensor a is both in DIR/1.safetensors and in DIR/2.safetensors"},
		{"none", map[string]string{"pytorch_model.bin": "x"}, "checkpoint: DIR holds no .safetensors files"},
		{"manifest", map[string]string{"model.safetensors": ab, manifestName: `{}`},
			"checkpoint: DIR/manifest.json has format 0, and this program reads 1: another version of planc saved " +
				"it, or it is damaged"},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		for name, content := range tt.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		w, err := OpenWeights(dir)
		if err != nil {
			got = []string{strings.ReplaceAll(err.Error(), dir, "DIR")}
		} else {
			for _, tensor := range w.Tensors() {
				if _, r, err := w.Tensor(tensor.Name); err != nil || r.Size() != 1 {
					t.Errorf("%s: tensor %s: %v", tt.name, tensor.Name, err)
				}
				got = append(got, tensor.Name)
			}
			w.Close()
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestOpenWeightsOfOneFile(t *testing.T) {
	path := tempFile(t, tensorFile(t, "a", "b"))
	w, err := OpenWeights(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_, _, err = w.Tensor("z")
	if want := "checkpoint: " + path + " has no tensor z (it has a, b)"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = OpenWeights(path + "x")
	if want := "checkpoint: there is no " + path + "x"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A checkpoint is a folder of weights too.
func TestOpenWeightsOfCheckpoint(t *testing.T) {
	w, err := OpenWeights(mustSave(t, t.TempDir(), 3, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if got := w.Tensors(); len(got) != 2 || got[0].Name != "w" {
		t.Errorf("tensors are %v", got)
	}
}
