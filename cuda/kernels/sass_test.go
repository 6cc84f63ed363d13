package kernels

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels/sass"
)

// The machine code of every kernel stays within the limits of testdata/sass.tsv: spilled registers, packs written
// element by element, instructions of inner loops. PLANC_UPDATE=1 writes the table.
func TestNvccLimits(t *testing.T) {
	dir := t.TempDir()
	files := sourceFiles(t)
	files["base.cuh"] = inOneType(t, files["base.cuh"])
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var counts []sass.Counts
	var compiler string
	t.Run("files", func(t *testing.T) {
		for name := range files {
			if filepath.Ext(name) != ".cu" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				functions, version, skip, err := sass.Compile(dir, name)
				if err != nil {
					t.Fatal(err)
				}
				if skip != "" {
					t.Skip(skip)
				}
				mu.Lock()
				defer mu.Unlock()
				compiler = version
				for i := range functions {
					counts = append(counts, sass.Measure(&functions[i]))
				}
			})
		}
	})
	if compiler != "" && !t.Failed() {
		holdLimits(t, compiler, limited(counts))
	}
}

var eachType = regexp.MustCompile(`(?s)#define EACH_TYPE\(K\).*#define KERNEL `)

// inOneType returns base.cuh with fewer types in EACH_TYPE and EACH_COUPLE, so that nvcc takes less time.
func inOneType(t *testing.T, base []byte) []byte {
	if !eachType.Match(base) {
		t.Fatal("base.cuh has no EACH_TYPE in front of KERNEL")
	}
	return eachType.ReplaceAll(base, []byte("#define EACH_TYPE(K) K(bf16, bf16)\n"+
		"#define EACH_COUPLE(K) K(float, bf16, f32, bf16)\n#define KERNEL "))
}

// limited returns the counts of the functions that the table has: of those that differ only by type, that of bf16.
// The other types have the same loops.
func limited(counts []sass.Counts) (out []sass.Counts) {
	for _, k := range Table {
		suffix := k.Types[0]
		for _, s := range []string{"bf16", "f32_bf16", "f32_f32_bf16"} {
			if slices.Contains(k.Types, s) {
				suffix = s
				break
			}
		}
		for _, c := range counts {
			if c.Kernel == k.Name+"_"+suffix {
				out = append(out, c)
			}
		}
	}
	return out
}

// holdLimits compares counts with testdata/sass.tsv.
func holdLimits(t *testing.T, compiler string, counts []sass.Counts) {
	t.Helper()
	const table = "testdata/sass.tsv"
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
