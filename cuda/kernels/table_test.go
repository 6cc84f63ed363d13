package kernels

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu"
)

var (
	declared  = regexp.MustCompile(`KERNEL(?:_\d+)?(?:_FITTING\(\(.*?\)\))? (\w+?)(_f64|_i32|_##[\w#]+)?\(([^)]*)\)`)
	parameter = regexp.MustCompile(`^(?:const )?(.+?) ?(\w+)$`)
)

// kinds maps C++ types to the kinds of parameters.
var kinds = map[string]string{"T*": "T", "Acc<T>*": "A", "Acc<P>*": "A", "Y*": "T", "P*": "T", "U*": "T",
	"float*": "T", "G*": "T", "M*": "T", "u32*": "P", "int*": "I", "double*": "D", "i64*": "W", "u64*": "W",
	"T* const*": "S", "const T* const*": "S",
	"int": "i", "i64": "l", "u64": "u", "double": "d", "Attend": "s"}

// The table has the parameters of every function in the sources, and no other functions.
func TestTable(t *testing.T) {
	found := map[string]bool{}
	for name, text := range expandedSources(t) {
		flat := strings.Join(strings.Fields(strings.ReplaceAll(text, "\\\n", " ")), " ")
		for _, d := range declared.FindAllStringSubmatch(flat, -1) {
			i := slices.IndexFunc(Table, func(k Kernel) bool { return k.Name == d[1] && k.File == name })
			if i < 0 {
				t.Errorf("%s: the table has no %s", name, d[1])
				continue
			}
			found[d[1]] = true
			var params []string
			for _, p := range strings.Split(d[3], ",") {
				m := parameter.FindStringSubmatch(strings.TrimSpace(p))
				if m == nil || kinds[m[1]] == "" {
					t.Fatalf("%s: %s has a parameter %q of no kind", name, d[1], p)
				}
				params = append(params, m[2]+":"+kinds[m[1]])
			}
			if want := strings.ReplaceAll(Table[i].Params, "?", ""); strings.Join(params, " ") != want {
				t.Errorf("%s: %s has parameters %q, the table %q", name, d[1], params, want)
			}
		}
	}
	for _, k := range Table {
		if !found[k.Name] {
			t.Errorf("%s has no %s", k.File, k.Name)
		}
	}
}

var (
	ofDim    = regexp.MustCompile(`(?m)^ATTENTION_KERNELS\((\d+),`)
	ofExtras = regexp.MustCompile(`\tATTENTION\(D, M, N, [^,]+, (\w*), T, t\)`)
)

// expandedSources returns the sources, with the kernels that ATTENTION_KERNELS defines.
func expandedSources(t *testing.T) map[string]string {
	files := map[string]string{}
	for name, text := range sourceFiles(t) {
		files[name] = string(text)
	}
	const header = "attention_kernels.cuh"
	macros := files[header]
	delete(files, header)
	for name, text := range files {
		for _, dim := range ofDim.FindAllStringSubmatch(text, -1) {
			for _, extras := range ofExtras.FindAllStringSubmatch(macros, -1) {
				files[name] += strings.NewReplacer("##D", dim[1], "##ending", extras[1], "##_##t", "_##t", "##_", "_").
					Replace(macros)
			}
		}
	}
	return files
}

// Each kernel's loop exists in package runtime.
func TestLoops(t *testing.T) {
	for _, k := range Table {
		if name, ok := strings.CutPrefix(k.Loop, "cpu."); ok && !slices.Contains(otherLoops, k.Loop) {
			if _, ok := reflect.TypeFor[cpu.Kernels[float32]]().FieldByName(name); !ok {
				t.Errorf("%s: package cpu has no kernel %s", k.Name, name)
			}
		} else if !slices.Contains(otherLoops, k.Loop) {
			t.Errorf("%s: no loop %q", k.Name, k.Loop)
		}
	}
}

// otherLoops lists loops that are not kernels of package cpu. The kernels' tests call them.
var otherLoops = []string{"num.Convert", "runtime.Accumulate", "runtime.ClipGradients", "runtime.LossScaleSettings",
	"runtime.Optimize", "runtime.Join", "runtime.PartOf", "comm.AllReduce", "comm.ReduceScatter", "cpu.SumRowsEach",
	"cpu.Rounds", "cpu.LimitChoices",
	"comm.AllGatherZigzag", "comm.SliceZigzag", "runtime.Zero", "num.RoundBF16", "runtime.Iota", "runtime.AuxScale",
	"runtime.AddAux", "runtime.DropoutKey", "runtime.Hyper", "runtime.Rounds", "runtime.CountRounds"}

// Nothing is added atomically, so that sums have one order. No header is needed, so that NVRTC compiles
// everything.
func TestSourcesAreDeterministicAndWhole(t *testing.T) {
	include := regexp.MustCompile(`#include\s+(\S+)`)
	for name, text := range sourceFiles(t) {
		if strings.Contains(string(text), "atomic") {
			t.Errorf("%s has something atomic", name)
		}
		for _, m := range include.FindAllStringSubmatch(string(text), -1) {
			if _, err := Sources.Open(strings.Trim(m[1], `"`)); err != nil {
				t.Errorf("%s includes %s, which is not ours", name, m[1])
			}
		}
	}
}

// Grids are within CUDA's limits, and blocks consist of whole warps.
func TestGeometry(t *testing.T) {
	for _, k := range Table {
		for _, s := range [][2]int{{0, 1}, {1, 0}, {1, 1}, {1, 1<<31 - 1}, {1 << 24, 8192}, {1 << 20, 1 << 18}} {
			l := k.Launch(s[0], s[1])
			threads := l.Block[0] * l.Block[1] * l.Block[2]
			if threads < 32 || threads > 1024 || l.Block[0]%32 != 0 {
				t.Errorf("%s of %v: %d threads in %v", k.Name, s, threads, l.Block)
			}
			if l.Grid[0] < 1 || l.Grid[0] > 1<<31-1 || l.Grid[1] < 1 || l.Grid[1] > 65535 || l.Grid[2] != 1 {
				t.Errorf("%s of %v: a grid of %v", k.Name, s, l.Grid)
			}
		}
	}
}
