package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without Go, or without a cache that can be written, training does not work, and doctor says why and what to do.
func TestDoctorFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ variable, value, want string }{
		{"PATH", t.TempDir(), "planc: training on this CPU does not work: go: go is not on PATH"},
		{"XDG_CACHE_HOME", filepath.Join(file, "below"), "planc: training on this CPU does not work: cache: "},
	} {
		t.Run(c.variable, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("HOME", os.Getenv("XDG_CACHE_HOME"))
			t.Setenv(c.variable, c.value)
			code, out, errs := call("doctor")
			if code != exitFailed || !strings.HasPrefix(errs, c.want) || !strings.Contains(out, " failed ") {
				t.Errorf("exit %d\n%s\n%s", code, out, errs)
			}
			code, out, _ = call("doctor", "--json")
			if code != exitFailed || !strings.Contains(out, `"works": false`) || strings.Contains(out, `"error"`) {
				t.Errorf("exit %d\n%s", code, out)
			}
		})
	}
}
