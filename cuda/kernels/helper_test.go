package kernels

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/runtime/num"
)

// elem is a storage type of kernels.
type elem struct {
	name       string
	size       int
	unit, sums float64 // unit roundoff of the storage type and of the compute type
}

var elems = []elem{{"f32", 4, 0x1p-24, 0x1p-24}, {"f64", 8, 0x1p-53, 0x1p-53}, {"bf16", 2, 0x1p-8, 0x1p-24},
	{"f16", 2, 0x1p-11, 0x1p-24}}

// computed returns the compute type.
func (e elem) computed() elem {
	if e.name == "f64" {
		return elems[1]
	}
	return elems[0]
}

// buffer returns a buffer with numbers in the storage type.
func (e elem) buffer(v []float64) *emulate.Buffer {
	b := &emulate.Buffer{}
	for _, x := range v {
		switch e.name {
		case "f64":
			b.Bytes = binary.LittleEndian.AppendUint64(b.Bytes, math.Float64bits(x))
		case "f32":
			b.Bytes = binary.LittleEndian.AppendUint32(b.Bytes, math.Float32bits(float32(x)))
		case "bf16":
			b.Bytes = binary.LittleEndian.AppendUint16(b.Bytes, num.ToBF16(float32(x)).Bits)
		case "f16":
			b.Bytes = binary.LittleEndian.AppendUint16(b.Bytes, num.ToF16(float32(x)).Bits)
		}
	}
	return b
}

// values returns a buffer's numbers.
func (e elem) values(b *emulate.Buffer) []float64 {
	v := make([]float64, len(b.Bytes)/e.size)
	for i := range v {
		switch p := b.Bytes[i*e.size:]; e.name {
		case "f64":
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(p))
		case "f32":
			v[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(p)))
		case "bf16":
			v[i] = float64(num.BF16{Bits: binary.LittleEndian.Uint16(p)}.Wide())
		case "f16":
			v[i] = float64(num.F16{Bits: binary.LittleEndian.Uint16(p)}.Wide())
		}
	}
	return v
}

// draw returns n numbers of the type, from about -2 to 2, which depend only on the name.
func (e elem) draw(n int, name string) []float64 {
	seed := uint64(n)
	for _, c := range name {
		seed = seed*31 + uint64(c)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]float64, n)
	for i := range v {
		v[i] = r.Float64()*4 - 2
	}
	return e.values(e.buffer(v))
}

// nans returns n numbers that a kernel must not read, or must overwrite.
func nans(n int) []float64 { return slices.Repeat([]float64{math.NaN()}, n) }

func ints(v []int32) *emulate.Buffer {
	b := &emulate.Buffer{}
	for _, x := range v {
		b.Bytes = binary.LittleEndian.AppendUint32(b.Bytes, uint32(x))
	}
	return b
}

func intsOf(b *emulate.Buffer) []int32 {
	v := make([]int32, len(b.Bytes)/4)
	for i := range v {
		v[i] = int32(binary.LittleEndian.Uint32(b.Bytes[i*4:]))
	}
	return v
}

// near checks that numbers are equal up to the rounding of the result, plus the given number of roundings
// of scale, the size of the terms.
func (e elem) near(t *testing.T, what string, got, want []float64, roundings, scale float64) {
	t.Helper()
	faults, worst := 0, 0.0
	defer func() {
		if len(kernelServer()) > 0 {
			t.Logf("%s: largest error %.3g of its bound", what, worst)
		}
	}()
	for i, w := range want {
		g := got[i]
		if w == g || w != w && g != g {
			continue
		}
		d, bound := math.Abs(g-w), e.unit*math.Abs(w)*1.001+e.sums*roundings*scale
		worst = max(worst, d/bound)
		if !(d <= bound) {
			t.Errorf("%s[%d] is %v, want %v", what, i, g, w)
			if os.Getenv("PLANC_MUTATION") != "" {
				t.FailNow() // the fault is detected
			}
			faults++
			if faults == 5 {
				return
			}
		}
	}
}

// sourceFiles returns the kernels' sources by name.
func sourceFiles(t testing.TB) map[string][]byte {
	files := map[string][]byte{}
	entries, err := fs.ReadDir(Sources, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := Sources.ReadFile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = text
	}
	mutate(t, files)
	return files
}

// functions returns the names of a file's functions.
func functions(file string) (names []string) {
	for _, k := range Table {
		for _, s := range k.Types {
			if k.File == file {
				names = append(names, k.Name+"_"+s)
			}
		}
	}
	return names
}

// compiled caches machines by file.
var compiled sync.Map

func TestMain(m *testing.M) {
	code := m.Run()
	compiled.Range(func(_, v any) bool {
		if r, err := v.(func() (*emulate.Machine, error))(); err == nil {
			r.Close()
		}
		return true
	})
	for _, dir := range folders {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

var (
	folders   []string
	foldersMu sync.Mutex
)

// compile builds a file's kernels in a folder that is removed when the tests end.
func compile(file string, files map[string][]byte) (*emulate.Machine, error) {
	if server := kernelServer(); len(server) > 0 {
		return emulate.Connect(append(server, file))
	}
	dir, err := os.MkdirTemp("", "planc-kernels-")
	if err != nil {
		return nil, err
	}
	foldersMu.Lock()
	folders = append(folders, dir)
	foldersMu.Unlock()
	return emulate.Build(dir, file, files, functions(file))
}

// needEmulation skips a test if kernels are not run.
func needEmulation(t *testing.T) {
	t.Helper()
	if why := emulate.Skipped(); why != "" && len(kernelServer()) == 0 {
		t.Skip(why)
	}
}

// kernelServer returns the words of the command that serves launches of a file's kernels, without the file's name. It
// is empty if kernels are compiled as C++. tools/cudalab sets the variable, a line for each word, to run the tests on a
// GPU.
func kernelServer() []string {
	return strings.FieldsFunc(os.Getenv("PLANC_KERNEL_SERVER"), func(r rune) bool { return r == '\n' })
}

// bench runs the kernels of one file with numbers of one type.
type bench struct {
	*testing.T
	elem
	m *emulate.Machine
}

// inEachType runs a test with the kernels of a file in each type that the kernel has.
func inEachType(t *testing.T, kernel string, test func(b bench)) {
	k := kernelOf(kernel)
	m := machineOf(t, k.File)
	for _, e := range elems {
		if slices.Contains(k.Types, e.name) && (!t.Failed() || os.Getenv("PLANC_MUTATION") == "") {
			t.Run(e.name, func(t *testing.T) { test(bench{t, e, m}) })
		}
	}
}

// machineOf returns a file's kernels, compiled once.
func machineOf(t *testing.T, file string) *emulate.Machine {
	t.Helper()
	needEmulation(t)
	once, _ := compiled.LoadOrStore(file, sync.OnceValues(func() (*emulate.Machine, error) {
		return compile(file, sourceFiles(t))
	}))
	m, err := once.(func() (*emulate.Machine, error))()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func kernelOf(name string) Kernel {
	i := slices.IndexFunc(Table, func(k Kernel) bool { return k.Name == name })
	if i < 0 {
		panic("no kernel " + name)
	}
	return Table[i]
}

// run launches a kernel for a size. Arguments must have the kinds of the table.
func (b bench) run(kernel string, rows, cols int, args ...any) {
	b.Helper()
	k := kernelOf(kernel)
	if why := mismatch(k, args); why != "" {
		b.Fatalf("%s: %s", kernel, why)
	}
	name := kernel + "_" + b.name
	if !slices.Contains(k.Types, b.name) {
		name = kernel + "_" + k.Types[0]
	}
	if err := b.m.Launch(name, emulate.Launch(k.Launch(rows, cols)), args...); err != nil {
		b.Fatalf("%s: %v", name, err)
	}
}

// mismatch compares a call with the table's parameters.
func mismatch(k Kernel, args []any) string {
	params := strings.Fields(k.Params)
	if len(params) != len(args) {
		return fmt.Sprintf("%d arguments for %q", len(args), k.Params)
	}
	for i, p := range params {
		_, kind, _ := strings.Cut(p, ":")
		ok := false
		switch args[i].(type) {
		case *emulate.Buffer:
			ok = strings.Contains("TAPIDW", kind[:1])
		case emulate.Table:
			ok = kind[0] == 'S'
		case nil:
			ok = strings.HasSuffix(kind, "?")
		case int:
			ok = kind == "i"
		case int64:
			ok = kind == "l"
		case uint64:
			ok = kind == "u"
		case float64:
			ok = kind == "d"
		case []byte:
			ok = kind == "s"
		}
		if !ok {
			return fmt.Sprintf("argument %d is a %T, the table says %s", i, args[i], p)
		}
	}
	return ""
}
