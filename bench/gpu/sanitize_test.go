package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lawGroups are groups for the tests.
func lawGroups() []*LawGroup {
	group := func(name, elem, kinds string) *LawGroup {
		return &LawGroup{Name: name, Plan: "gpt2 adamw: " + name, Kinds: kinds, Ranks: 2,
			Cases: []LawCase{{ID: name + "ref"}, {ID: name, GPU: true, Type: elem, Arena: 1024}}}
	}
	return []*LawGroup{group("a", "f64", "dp true, zero 1"), group("b", "f64", "dp true, zero 1, cp ring"),
		group("c", "bf16", "cp ring"), group("d", "f64", "cp ring")}
}

// The commands contain each kind of plan, those that select kernels in each type, and nothing twice.
func TestCovering(t *testing.T) {
	var names []string
	for _, g := range covering(lawGroups()) {
		names = append(names, g.Name)
	}
	if !slices.Equal(names, []string{"b", "c"}) {
		t.Errorf("%v", names)
	}
}

// compute-sanitizer is found next to the libraries of wheels too, runs trials and programs, and its findings fail the
// check.
func TestSanitize(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "cu13", "bin")
	text, err := json.Marshal(lawGroups())
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\ncase \"$*\" in *\" $BAD\") exit $CODE;; esac\n"
	for _, err := range []error{os.MkdirAll(bin, 0o777), os.WriteFile(filepath.Join(bin, "compute-sanitizer"),
		[]byte(script), 0o777), os.WriteFile(filepath.Join(dir, "laws.json"), text, 0o666)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ bad, code, why string }{
		{"none", "0", ""}, {"c", "99", "memcheck found something in 1 of 5 commands"}, {"attention", "1",
			"1 of 5 commands did not end under memcheck"},
	} {
		t.Setenv("PATH", "/bin:/usr/bin")
		b := &bench{dir: dir, env: append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "cu13", "lib"),
			"BAD="+c.bad, "CODE="+c.code)}
		var r Result
		err := sanitize("memcheck")(t.Context(), b, &r)
		if (err != nil || c.why != "") && (err == nil || err.Error() != c.why) || len(r.Rows) != 5 {
			t.Errorf("%v, want %q: %v", err, c.why, r.Rows)
		}
	}
}

// Law 3 detects an arena that was not used, one that was written beyond its end, one that is not the compiler's, and
// a rank without a report.
func TestArenas(t *testing.T) {
	good := arenaUse{Planned: 1024, Written: 1000, Whole: true}
	for _, c := range []struct {
		why string
		all []arenaUse
	}{
		{"", []arenaUse{good, {Rank: 1, Planned: 512, Written: 512, Whole: true}}},
		{"rank 1 wrote beyond its arena", []arenaUse{good, {Rank: 1, Planned: 1024, Written: 1024}}},
		{"", []arenaUse{good, {Rank: 1, Planned: 1024, Written: 700, Whole: true}}},
		{"rank 1 wrote nothing into its arena", []arenaUse{good, {Rank: 1, Planned: 1024, Whole: true}}},
		{"1 of 2 ranks reported their arenas", []arenaUse{good}},
		{"the largest arena has 2048 bytes, and the compiler laid out 1024", []arenaUse{good, {Rank: 1, Planned: 2048,
			Written: 2048, Whole: true}}},
	} {
		b := &bench{runs: []lawRun{{Group: lawGroups()[0], Arenas: c.all, ran: true}}}
		var r Result
		err := arenas(t.Context(), b, &r)
		if _, failed := err.(fault); failed != (c.why != "") || !strings.Contains(r.Rows[0][4], c.why) {
			t.Errorf("%v: %v, want %q", err, r.Rows, c.why)
		}
	}
}
