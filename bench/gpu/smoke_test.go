package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The check distinguishes a tool of compute-sanitizer that finds something from one that cannot run, and runs the
// program under all four.
func TestSanitizer(t *testing.T) {
	for _, c := range []struct{ memcheck, racecheck, why string }{
		{"0", "0", ""},
		{"99", "1", "1 of 4 compute-sanitizer tools reported errors"},
		{"0", "1", "1 of 4 compute-sanitizer tools failed to run"},
	} {
		bin := t.TempDir()
		script := "#!/bin/sh\nkind=$2\nwhile [ \"$1\" != --dir ]; do shift; done\n: >\"$2/metrics.jsonl\"\n" +
			"case $kind in memcheck) echo read of no memory; exit " + c.memcheck + ";; racecheck) exit " +
			c.racecheck + ";; esac\n"
		if err := os.WriteFile(filepath.Join(bin, "compute-sanitizer"), []byte(script), 0o777); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		b := &bench{dir: bin, env: os.Environ()}
		var r Result
		err := sanitizer(t.Context(), b, &r)
		if (err != nil || c.why != "") && (err == nil || err.Error() != c.why) {
			t.Errorf("%v, want %q", err, c.why)
		}
		if len(r.Rows) != len(sanitizers) {
			t.Fatalf("%v", r.Rows)
		}
		if _, found := err.(fault); found != (c.memcheck == "99") ||
			found && !strings.Contains(r.Rows[0][1], "read of no memory") {
			t.Errorf("%v: %v", err, r.Rows)
		}
	}
}
