package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A picture replaces an earlier one, and no other file.
func TestPictureReplacesNothingElse(t *testing.T) {
	t.Chdir(t.TempDir())
	draw := func(file string) (code int, out, errs string) {
		return call(append(strings.Fields("ir --model gpt2-124m --cluster cpu --devices 2 --global-batch 4 --seq-len "+
			"32 "+
			"--set plan.pp=2 --picture"), file)...)
	}
	for range 2 {
		code, out, errs := draw("schedule.svg")
		if code != exitDone || out != "" || errs != "wrote    schedule.svg\n" {
			t.Fatalf("exit code %d, %q, %q", code, out, errs)
		}
	}
	data, err := os.ReadFile("schedule.svg")
	if err != nil || !strings.HasPrefix(string(data), "<svg ") {
		t.Errorf("%.20q, %v", data, err)
	}
	other := filepath.Join(t.TempDir(), "notes.md")
	if err := os.WriteFile(other, []byte("# mine\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	code, _, errs := draw(other)
	if code != exitInput || !strings.Contains(strings.Join(strings.Fields(errs),
		" "), "is not an SVG, and is not overwritten") {
		t.Errorf("exit code %d, %q", code, errs)
	}
}
