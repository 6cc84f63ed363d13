package codegen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planc-dev/planc/codegen/cu"
	"github.com/planc-dev/planc/cuda/kernels/sass"
)

// namedChains returns chains of every link in bf16, with names made of their links.
func namedChains() []cu.Chain {
	all := singles("BF16")
	uses := map[string]int{}
	for i := range all {
		var name []string
		for _, l := range all[i].Links {
			name = append(name, l.Do)
		}
		all[i].Name = strings.Join(name, "_")
		uses[all[i].Name]++
		if n := uses[all[i].Name]; n > 1 {
			all[i].Name += fmt.Sprint(n)
		}
	}
	return all
}

// The machine code of fused groups stays within the limits of testdata/sass.tsv, as that of the hand-written kernels
// does within theirs. PLANC_UPDATE=1 writes the table.
func TestNvccLimitsOfChains(t *testing.T) {
	const table = "testdata/sass.tsv"
	dir := t.TempDir()
	for name, text := range printed(t, false, namedChains()) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	functions, compiler, skip, err := sass.Compile(dir, "chains.cu")
	if err != nil {
		t.Fatal(err)
	}
	if skip != "" {
		t.Skip(skip)
	}
	var counts []sass.Counts
	for i := range functions {
		counts = append(counts, sass.Measure(&functions[i]))
	}
	problems, skip, err := sass.HoldFile(table, compiler, counts, os.Getenv("PLANC_UPDATE") != "")
	switch {
	case err != nil:
		t.Fatal(err)
	case skip != "":
		t.Skip(skip)
	case len(problems) > 0:
		t.Errorf("machine code exceeds %s:\n%s", table, strings.Join(problems, "\n"))
	}
}
