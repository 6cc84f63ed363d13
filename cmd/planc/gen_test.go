package main

import (
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNamesOfGenerated(t *testing.T) {
	for folder, want := range map[string]string{"train": "train", "2-Adder": "adder", "my model": "mymodel",
		"func": "train", "main": "train", "": "train",
		"..": "train", "x_test": "x", "_test": "test", "Ünit": "ünit", "documentation": "train", "go": "train"} {
		if got := packageOf(folder); got != want {
			t.Errorf("folder %q is package %s, want %s", folder, got, want)
		}
	}
	for job, want := range map[string]string{"planc.yaml": "planc_planc.go", "a/b.c.yml": "b.c_planc.go",
		"_x.yaml": "x_planc.go", ".hid.yaml": "hid_planc.go",
		"a b.yaml": "a_b_planc.go", "_.yaml": "job_planc.go", "x_test.yaml": "x_test_planc.go",
		"noext": "noext_planc.go"} {
		if got := fileName(job); got != want {
			t.Errorf("job %q is generated as %s, want %s", job, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		if p := packageOf(name); !token.IsIdentifier(p) {
			t.Errorf("folder %q is package %q", name, p)
		}
		f := fileName(name + ".yaml")
		if strings.ContainsAny(f, `/\ :*?"<>|`) || strings.HasPrefix(f, ".") || strings.HasPrefix(f, "_") ||
			!strings.HasSuffix(f, generatedSuffix) {
			t.Errorf("job %q is generated as %q", name, f)
		}
	})
}

// A file is there whole or not at all, is left alone where it says the same, and a link stays one.
func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.lock")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		path, text string
		wrote      bool
	}{{path, "one\n", true}, {path, "one\n", false}, {path, "one\r\n", false}, {path, "two\n", true},
		{link, "three\n", true}} {
		wrote, err := writeWhole(c.path, []byte(c.text))
		if err != nil || wrote != c.wrote {
			t.Errorf("%q: wrote %v, %v; want %v", c.text, wrote, err, c.wrote)
		}
	}
	data, err := os.ReadFile(path)
	if info, statErr := os.Lstat(link); err != nil || statErr != nil || string(data) != "three\n" ||
		info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link's file holds %q, %v", data, err)
	}
	if _, err := writeWhole(filepath.Join(dir, "no", "a.lock"), nil); err == nil ||
		!strings.Contains(err.Error(), "no/a.lock cannot be written: ") {
		t.Errorf("%v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

// Code of a job for GPUs is for a CPU, which gen says.
func TestGenSaysTarget(t *testing.T) {
	job := filepath.Join(t.TempDir(), "planc.yaml")
	text := "model: {model_type: gpt2, vocab_size: 256, n_positions: 8, n_embd: 8, n_layer: 1, n_head: 1}\n" +
		"data: {train: [goroot:src/testdata/Isaac.Newton-Opticks.txt]}\ntrain: {seq_len: 8, global_batch: 16, steps: " +
		"1}\ncluster: CLUSTER\n"
	for cluster, want := range map[string]string{
		"8xh100": "target   cpu: this code runs all 8 ranks on one CPU instead of 1 × dgx-h100. Not\n" +
			"         supported yet: generated code for GPUs; planc compile --target cuda\n" +
			"         builds a binary for them\n",
		"1xcpu": "",
	} {
		if err := os.WriteFile(job, []byte(strings.Replace(text, "CLUSTER", cluster, 1)), 0o666); err != nil {
			t.Fatal(err)
		}
		code, _, errs := call("gen", job)
		if at := strings.Index(errs, "target "); code != exitDone || (at >= 0) != (want != "") ||
			at >= 0 && !strings.HasPrefix(errs[at:], want) {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", cluster, code, errs, want)
		}
	}
}
