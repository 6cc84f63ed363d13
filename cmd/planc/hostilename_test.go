package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// evil has what a terminal obeys, a bidirectional override, a byte order mark and an end of a line.
const evil = "a\x1b]0;owned\x07\u202eb\ufeff\nc"

// evilJob is a job whose name is given, in a folder and a file of evil names.
func evilJob(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), evil)
	job := filepath.Join(dir, evil+".yaml")
	text := "model: {model_type: gpt2, vocab_size: 256, n_positions: 8, n_embd: 8, n_layer: 1, n_head: 1}\n" +
		"data: {train: [goroot:src/testdata/Isaac.Newton-Opticks.txt]}\ntrain: {seq_len: 8, global_batch: 1, steps: " +
		"1}\ncluster: 1xcpu\n" + name
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(job, []byte(text), 0o666); err != nil {
		t.Skip(err)
	}
	return job
}

// harmless reports whether a terminal shows a text as it is written.
func harmless(s string) bool { return !strings.ContainsAny(s, "\x1b\x07\u202e\ufeff\r") }

// Whatever the names of files and flags are, nothing that planc prints has characters that a terminal obeys or hides.
func TestPrintsNoControlCharacters(t *testing.T) {
	job := evilJob(t, "")
	for _, args := range [][]string{
		{"plan", job}, {"plan", "--json", job}, {"explain", job}, {"plan", "--update", job}, {"diff", job, job},
		{"ir", job}, {"gen", job},
		{"verify", job}, {"plan", job + evil}, {"plan", "--model", evil, "--cluster", evil}, {evil},
		{"plan", "--" + evil}, {"plan", job, "--set", evil},
		{"plan", job, "--set", "name=" + evil}, {"plan", job, "--set", evil + "=" + evil}, {"-C", evil, "plan"},
		{"init", filepath.Dir(job)},
		{"clusters", evil}, {"models", evil}, {"compile", job, "-o", evil + "/" + evil}, {"explain", job, "--why-not",
			evil}, {"validate", evil},
	} {
		if code, out, errs := call(args...); !harmless(out+errs) || out+errs == "" {
			t.Errorf("%q ends with %d and prints %q and %q", args, code, out, errs)
		}
	}
}

// The code generated of a job is Go, whatever its file is called, and says so in a readable line.
func TestGeneratesGoOfAnyName(t *testing.T) {
	job := evilJob(t, "")
	if code, _, errs := call("gen", job); code != exitDone {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	found, err := filepath.Glob(filepath.Join(filepath.Dir(job), "*_planc.go"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	src, err := os.ReadFile(found[0])
	if err != nil || !harmless(string(src)) {
		t.Errorf("%v, or the code has what a terminal obeys: %.300q", err, src)
	}
	const want = "\n// Job a]0;ownedbc (a\\x1b]0;owned\\a\\u202eb\\ufeff\\nc.yaml): model "
	if !strings.Contains(string(src), want) {
		t.Errorf("%.300q has no %q", src, want)
	}
	if code, _, errs := call("verify", job); code != exitDone {
		t.Errorf("verify: exit code %d, %s", code, errs)
	}
}

// A name with characters that cannot be seen is refused, and shown with them.
func TestNamesAreVisible(t *testing.T) {
	for name, want := range map[string]string{
		`name: "\ufeff"`: `name is "\ufeff"; a name must not contain control or invisible characters [BadName]`,
		`name: "a\u202eb"`: `name is "a\u202eb"; a name must not contain control or invisible characters; did ` +
			`you mean ` +
			`ab? [BadName]`,
		`name: "x\e[31my"`: `name is "x\x1b[31my"; a name must not contain control or invisible characters; did ` +
			`you mean ` +
			`x[31my? [BadName]`,
		`name: "two\nlines"`: `name is "two\nlines"; a name must not contain control or invisible characters; did ` +
			`you mean ` +
			`twolines? [BadName]`,
	} {
		code, _, errs := call("plan", evilJob(t, name))
		if got := strings.Join(strings.Fields(errs), " "); code != exitInput ||
			!strings.HasSuffix(got, `\nc.yaml:5:7: `+want) {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", name, code, got, want)
		}
	}
	cluster := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(cluster, []byte("base: dgx-h100\ngpu: {name: \"H\\u200b100\"}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, _, errs := call("clusters", cluster)
	if want := `gpu.name is "H\u200b100"; a name must not contain control or invisible characters; did you ` +
		`mean H100? ` +
		`[BadName]`; !strings.Contains(strings.Join(strings.Fields(errs), " "), want) {
		t.Errorf("%s\nwant %s", errs, want)
	}
}
