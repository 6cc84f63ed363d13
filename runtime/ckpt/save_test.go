package ckpt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// contents are two small files; the model's first element is the value.
func contents(value float32) []Content {
	fill := func(n int) func(int, io.Writer) error {
		return func(i int, w io.Writer) error {
			x := make([]float32, n)
			x[0] = value + float32(i)
			return WriteFloats(w, x)
		}
	}
	return []Content{
		{"model.safetensors", []Tensor{{"w", F32, []int64{2, 2}}, {"b", F32, []int64{4}}}, nil, fill(4)},
		{"optimizer.safetensors", []Tensor{{"m.w", F32, []int64{2}}}, map[string]string{"kind": "adamw"}, fill(2)},
	}
}

func mustSave(t testing.TB, dir string, step int64, value float32) string {
	t.Helper()
	saved, err := Save(dir, Manifest{Step: step, Samples: step * 8}, contents(value))
	if err != nil {
		t.Fatal(err)
	}
	return saved.Path
}

func firstValue(t testing.TB, c *Checkpoint) float32 {
	t.Helper()
	f, err := c.File("model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, r, err := f.Tensor("w")
	if err != nil {
		t.Fatal(err)
	}
	var x [1]float32
	if err := ReadFloats(r, w.DType, 0, x[:]); err != nil {
		t.Fatal(err)
	}
	return x[0]
}

func TestSaveAndOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "checkpoints")
	m := Manifest{Step: 42, Updates: 41, Samples: 336, Tokens: 344064, Seed: 1<<64 - 1, Data: "id",
		Plan: "dp 2 · tp 2", Program: "abc", Extra: map[string]string{"zeros": noHash, "scale": "65536"}}
	saved, err := Save(dir, m, contents(7))
	if err != nil {
		t.Fatal(err)
	}
	if saved.Path != filepath.Join(dir, "step-00000042") || saved.Aside != "" {
		t.Errorf("saved as %+v", saved)
	}
	c, err := Open(saved.Path)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Manifest
	if len(got.Files) != 2 || got.Files[0].Name != "model.safetensors" || got.Format != 1 {
		t.Errorf("manifest %+v", got)
	}
	got.Format, got.Files, got.SHA256 = 0, nil, ""
	if !reflect.DeepEqual(got, m) {
		t.Errorf("got  %+v\nwant %+v", got, m)
	}
	if v := firstValue(t, c); v != 7 {
		t.Errorf("the first value is %g, want 7", v)
	}
	if _, err := c.File("manifest.json"); err == nil {
		t.Error("the manifest opens as a file of tensors")
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("the folder holds %v", list)
	}
}

// Two saves of the same state are the same bytes.
func TestSaveIsDeterministic(t *testing.T) {
	a, b := mustSave(t, t.TempDir(), 3, 1), mustSave(t, t.TempDir(), 3, 1)
	for _, name := range []string{"model.safetensors", "optimizer.safetensors", manifestName} {
		x, _ := os.ReadFile(filepath.Join(a, name))
		y, _ := os.ReadFile(filepath.Join(b, name))
		if string(x) != string(y) || len(x) == 0 {
			t.Errorf("%s differs", name)
		}
	}
}

// A flipped bit in any byte of any file is found.
func TestFlippedBits(t *testing.T) {
	path := mustSave(t, t.TempDir(), 5, 1)
	for _, name := range []string{"model.safetensors", "optimizer.safetensors", manifestName} {
		file := filepath.Join(path, name)
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for at := range content {
			content[at] ^= 1 << (at % 8)
			if err := os.WriteFile(file, content, 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := Open(path)
			var input *InputError
			if !errors.As(err, &input) || !strings.Contains(err.Error(), file) {
				t.Fatalf("%s: byte %d changed: %v", name, at, err)
			}
			content[at] ^= 1 << (at % 8)
		}
		if err := os.WriteFile(file, content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(path); err != nil {
		t.Error(err)
	}
}

func TestDamage(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(path string) error
		want  string
	}{
		{"truncated", func(p string) error { return os.Truncate(filepath.Join(p, "model.safetensors"), 100) },
			"checkpoint: DIR/step-00000005/model.safetensors is damaged: it has 100 bytes, and 152 were saved"},
		{"file missing", func(p string) error { return os.Remove(filepath.Join(p, "optimizer.safetensors")) },
			"checkpoint: DIR/step-00000005/optimizer.safetensors is missing"},
		{"no manifest", func(p string) error { return os.Remove(filepath.Join(p, manifestName)) },
			"checkpoint: DIR/step-00000005 has no manifest.json: it is not a checkpoint, or saving it did not finish"},
		{"cut manifest", func(p string) error { return os.Truncate(filepath.Join(p, manifestName), 90) },
			"checkpoint: DIR/step-00000005/manifest.json is damaged: unexpected end of JSON input"},
		{"bit", func(p string) error { return replace(filepath.Join(p, "model.safetensors"), "\x80?", "\x81?") },
			"checkpoint: DIR/step-00000005/model.safetensors is damaged: its content is not what was saved (the " +
				"SHA-256 differs)"},
		{"edited manifest", func(p string) error {
			return replace(filepath.Join(p, manifestName), `"samples": 40`, `"samples": 41`)
		},
			"checkpoint: DIR/step-00000005/manifest.json is damaged: it does not match its own checksum"},
		{"renamed", func(p string) error { return os.Rename(p, filepath.Join(filepath.Dir(p), stepName(9))) },
			"checkpoint: DIR/step-00000009 holds step 5: it was renamed"},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		mustSave(t, dir, 4, 1)
		if err := tt.spoil(mustSave(t, dir, 5, 1)); err != nil {
			t.Fatal(err)
		}
		c, skipped, err := Newest(dir)
		if err != nil || c == nil || c.Manifest.Step != 4 || len(skipped) != 1 {
			t.Errorf("%s: newest is %v, skipped %v, %v", tt.name, c, skipped, err)
			continue
		}
		if got := strings.ReplaceAll(skipped[0].Err.Error(), dir, "DIR"); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func replace(file, old, new string) error {
	b, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(b), old) {
		return fmt.Errorf("%s has no %q: %v", file, old, err)
	}
	return os.WriteFile(file, []byte(strings.Replace(string(b), old, new, 1)), 0o666)
}

func TestNewest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if c, skipped, err := Newest(dir); c != nil || skipped != nil || err != nil {
		t.Errorf("no folder: %v, %v, %v", c, skipped, err)
	}
	if _, err := Clean(dir); err != nil {
		t.Error(err)
	}
	for _, step := range []int64{9, 100000000, 10} { // by number, not by name or time
		mustSave(t, dir, step, float32(step))
	}
	for _, name := range []string{"step-7", "step-x", "notes", "step-00000011.bak", ".tmp-00000200-x"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	c, skipped, err := Newest(dir)
	if err != nil || c == nil || c.Manifest.Step != 100000000 || len(skipped) != 0 {
		t.Errorf("newest is %v, skipped %v, %v", c, skipped, err)
	}
	if c, err := Find(dir, 9); err != nil || c.Manifest.Step != 9 {
		t.Errorf("step 9 is %v, %v", c, err)
	}
	_, err = Find(dir, 8)
	if want := "checkpoint: there is no checkpoint of step 8 in " + dir + "; existing steps: 100000000, 10, 9"; err ==
		nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = Find(t.TempDir(), 8)
	if err == nil || !strings.HasSuffix(err.Error(), ", and no other one") {
		t.Error(err)
	}
}

func TestSaveMessages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Save(filepath.Join(file, "checkpoints"), Manifest{Step: 3}, contents(1))
	want := fmt.Sprintf("checkpoint: cannot save step 3 in %s/checkpoints: mkdir %s: not a directory; choose a "+
		"folder that can be written with --checkpoint-dir", file, file)
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for cause, want := range map[error]string{
		fs.ErrPermission: "checkpoint: cannot save step 3 in DIR: permission denied; choose a folder that can be " +
			"written with --checkpoint-dir",
		syscall.EROFS: "checkpoint: cannot save step 3 in DIR: read-only file system; choose a folder that can be " +
			"written with --checkpoint-dir",
		syscall.ENOSPC: "checkpoint: cannot save step 3 in DIR: no space left on device; it needs 40 bytes: free " +
			"some space, or choose another folder with --checkpoint-dir",
		errCrash: "checkpoint: cannot save step 3 in DIR: the machine stopped",
	} {
		if cause == fs.ErrPermission {
			cause = syscall.EACCES
		}
		dir := t.TempDir()
		_, err := save(newCrashFS(2, cause), dir, Manifest{Step: 3}, contents(1))
		if err == nil || strings.ReplaceAll(err.Error(), dir, "DIR") != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestFillMustFillExactly(t *testing.T) {
	for bytes, want := range map[int]string{
		15: "tensor w takes 16 bytes, and 15 were written", 17: "tensor w takes 16 bytes, and 17 were written",
		99: "99 bytes of tensors, and the header says 32",
	} {
		dir, calls := t.TempDir(), 0
		c := contents(1)
		c[0].Fill = func(_ int, w io.Writer) error {
			calls++
			_, err := w.Write(make([]byte, bytes))
			return err
		}
		_, err := Save(dir, Manifest{Step: 3}, c)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "model.safetensors: ") || calls != 1 {
			t.Errorf("%d bytes, %d calls: %v", bytes, calls, err)
		}
		if list, _ := os.ReadDir(dir); len(list) > 0 {
			t.Errorf("leaves %v", list)
		}
	}
}

func ExampleSave() {
	dir, _ := os.MkdirTemp("", "ckpt")
	defer os.RemoveAll(dir)
	bias := []float32{1, 2, 3}
	_, err := Save(dir, Manifest{Step: 42}, []Content{{
		Name:    "model.safetensors",
		Tensors: []Tensor{{"bias", F32, []int64{3}}},
		Fill:    func(i int, w io.Writer) error { return WriteFloats(w, bias) },
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, _, _ := Newest(dir)
	f, _ := c.File("model.safetensors")
	defer f.Close()
	t, r, _ := f.Tensor("bias")
	var last [1]float32
	ReadFloats(r, t.DType, 2, last[:]) // this rank's slice only
	fmt.Println(filepath.Base(c.Path), t.Shape, last)
	// Output: step-00000042 [3] [3]
}

// If there are many steps, the message lists those nearest to the missing one, newest first.
func TestStepsThere(t *testing.T) {
	many := make([]int64, 60)
	for i := range many {
		many[i] = int64(600 - 10*i)
	}
	for _, c := range []struct {
		have []int64
		step int64
		want string
	}{
		{[]int64{3}, 2, "existing steps: 3"},
		{many[:10], 17, "existing steps: 600, 590, 580, 570, 560, 550, 540, 530, 520, 510"},
		{many, 17, "the nearest of 60 existing steps: 100, 90, 80, 70, 60, 50, 40, 30, 20, 10"},
		{many, 304, "the nearest of 60 existing steps: 350, 340, 330, 320, 310, 300, 290, 280, 270, 260"},
	} {
		if got := stepsThere(c.have, c.step); got != c.want {
			t.Errorf("step %d: %s; want %s", c.step, got, c.want)
		}
	}
}

// What Save writes, Open reads: the settings of a job with very many data files, too.
func TestLongManifest(t *testing.T) {
	files := strings.Repeat("123456789 tokens in 1 file of weight 0.001 and ", 1<<15)
	saved, err := Save(t.TempDir(), Manifest{Step: 1, Extra: map[string]string{"data": files}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := Open(saved.Path); err != nil || c.Manifest.Extra["data"] != files {
		t.Error(err)
	}
}
