package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// call is a place of the generated code that calls a kernel.
type call struct {
	Name  string    // its function and what it computes, in the IR's words
	Count int       // in a step
	Took  []float64 // seconds, of each step, all its calls together
	flops float64   // of one call; 0: not a product
}

// calls trains a model for a turn in a program that times each kernel's call, and prints where a step's time goes: of
// each place, and of the kernels that the runtime calls, the least and the median over the steps, the largest first,
// with the share of the limit in GFLOP/s that a product reaches at its least; then of all calls of a step together, and
// of what is between them. On a busy machine the least says more.
func calls(dir string, m model, limit float64) error {
	if m.ranks != 1 || *isa != "auto" {
		return fmt.Errorf("-calls is for one rank and -cpu-isa auto")
	}
	dir = filepath.Join(dir, m.name+".calls")
	places, err := writeTimed(dir, m)
	if err != nil {
		return err
	}
	bin, report := filepath.Join(dir, "calls"), filepath.Join(dir, "report.json")
	if err := command(dir, "go", "build", "-mod=mod", "-o", bin, "."); err != nil {
		return err
	}
	if err := command(dir, bin, filepath.Join(dir, "run"), fmt.Sprint(stepsOf(m)+2), report,
		fmt.Sprint(*threads)); err != nil {
		return err
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return err
	}
	took := struct {
		Steps []float64
		Calls []call
	}{}
	if err := json.Unmarshal(text, &took); err != nil {
		return err
	}
	for _, name := range ofRuntime {
		places = append(places, call{Name: runtimes + name})
	}
	for i, c := range took.Calls {
		places[i].Count, places[i].Took = c.Count, c.Took
	}
	printCalls(places, took.Steps, limit)
	return nil
}

func printCalls(places []call, steps []float64, limit float64) {
	places = slices.DeleteFunc(places, func(c call) bool { return c.Count == 0 })
	slices.SortFunc(places, func(a, b call) int { return cmp.Compare(slices.Min(b.Took), slices.Min(a.Took)) })
	fmt.Printf("%9s %9s %6s %6s\n", "least ms", "median", "share", "calls")
	all, between := make([]float64, len(steps)), slices.Clone(steps)
	for _, c := range places {
		least, share := slices.Min(c.Took), ""
		for i, t := range c.Took {
			if *threads > 1 && strings.HasPrefix(c.Name, runtimes) {
				continue
			}
			all[i] += t
			between[i] -= t
		}
		if c.flops > 0 {
			share = fmt.Sprintf("%.0f%%", 100*c.flops*float64(c.Count)/limit/1e9/least)
		}
		fmt.Printf("%9.3f %9.3f %6s %6d  %s\n", 1e3*least, 1e3*median(c.Took), share, c.Count, c.Name)
	}
	for _, line := range []struct {
		what string
		took []float64
	}{{"all of these", all}, {"between them", between}, {"a step", steps}} {
		fmt.Printf("%9.3f %9.3f %6s %6s  %s\n", 1e3*slices.Min(line.took), 1e3*median(line.took), "", "", line.what)
	}
}

// runtimes begins the names of what the runtime calls. On several threads those calls go on beside others, so that what
// a step waits for them is between calls.
const runtimes = "runtime: "

// ofRuntime are the kernels that the runtime calls in a step, as fields of its table.
var ofRuntime = []string{"AdamW", "SumSquares"}

// writeTimed writes a module to dir: the model's program as planc gen prints it, with a clock around each call.
func writeTimed(dir string, m model) (places []call, err error) {
	code := filepath.Join(dir, "timed")
	if err := os.MkdirAll(code, 0o777); err != nil {
		return nil, err
	}
	job, generated := filepath.Join(dir, m.name+".yaml"), filepath.Join(code, m.name+"_planc.go")
	if err := os.WriteFile(job, []byte(m.job(1_000_000)), 0o666); err != nil {
		return nil, err
	}
	if err := command("", "go", "run", "./cmd/planc", "gen", job, "-o", code); err != nil {
		return nil, err
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(generated)
	if err != nil {
		return nil, err
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		return nil, err
	}
	text, places, err = timed(text)
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{
		generated: text, filepath.Join(code, "calls.go"): timedCalls(len(places), len(ofRuntime)),
		filepath.Join(dir, "main.go"): []byte(timedMain), filepath.Join(dir, "go.sum"): sums,
		filepath.Join(dir, "go.mod"): []byte("module calls\n\ngo 1.26\n\nrequire " + module + " v0.0.0\n\nreplace " +
			module + " => " + root + "\n"),
	} {
		if err := os.WriteFile(name, text, 0o666); err != nil {
			return nil, err
		}
	}
	return places, nil
}

const module = "github.com/planc-dev/planc"

func command(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// timed is generated code with a clock around each call of a kernel, and the calls.
func timed(text []byte) (out []byte, places []call, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", text, parser.ParseComments)
	if err != nil {
		return nil, nil, err
	}
	at := func(p token.Pos) int { return files.Position(p).Offset }
	last := 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.ExprStmt)
			if !ok {
				return true
			}
			c, ok := s.X.(*ast.CallExpr)
			kernel := kernelOf(c, ok)
			if kernel == "" {
				return true
			}
			from, to := at(s.Pos()), at(s.End())
			out = fmt.Appendf(append(out, text[last:from]...), "{ began := now(); %s; took(%d, began) }",
				text[from:to], len(places))
			last = to
			places = append(places, call{Name: f.Name.Name + ": " + kernel + ": " + lastComment(text[:from]),
				flops: flopsOf(kernel, c)})
			return false
		})
	}
	return append(out, text[last:]...), places, nil
}

// kernelOf is the kernel that a call calls, "" if none.
func kernelOf(c *ast.CallExpr, ok bool) string {
	if !ok {
		return ""
	}
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := f.X.(*ast.Ident); !ok || x.Name != "kern" {
		return ""
	}
	return f.Sel.Name
}

// lastComment is what the last comment of a text says is computed: "y = op operands".
func lastComment(text []byte) string {
	i := bytes.LastIndex(text, []byte("// "))
	line, _, _ := strings.Cut(string(text[max(i, 0)+3:]), "\n")
	what, _, _ := strings.Cut(line, " : ")
	return what
}

// flopsOf are those of a product or of attention, whose masked half counts.
func flopsOf(kernel string, c *ast.CallExpr) float64 {
	size, fields := 2.0, map[string]float64{}
	n := 0
	ast.Inspect(c, func(x ast.Node) bool {
		if kv, ok := x.(*ast.KeyValueExpr); ok {
			if v, ok := kv.Value.(*ast.BasicLit); ok {
				fields[fmt.Sprint(kv.Key)], _ = strconv.ParseFloat(v.Value, 64)
			}
			return false
		}
		if v, ok := x.(*ast.BasicLit); ok && v.Kind == token.INT && n < 3 {
			f, _ := strconv.ParseFloat(v.Value, 64)
			size, n = size*f, n+1
		}
		return true
	})
	products := fields["Batch"] * fields["Heads"] * fields["Group"] * fields["Seq"] * fields["KSeq"] *
		(fields["Dim"] + fields["VDim"])
	kernel = strings.TrimSuffix(kernel, "BF16")
	switch {
	case strings.HasPrefix(kernel, "MatMul"):
		return size
	case kernel == "Attention":
		return 2 * products
	case kernel == "AttentionGrad":
		return 4 * products
	}
	return 0
}

// timedCalls is what timed code calls.
func timedCalls(places, runtimes int) []byte {
	var b bytes.Buffer
	template.Must(template.New("").Parse(timedText)).Execute(&b, []int{places, places + runtimes})
	return b.Bytes()
}

const timedText = `package timed

import (
	"sync/atomic"
	"time"

	"` + module + `/runtime/cpu"
)

// The kernels that the runtime calls have the places behind those of the code.
func init() {
	table := cpu.Table[float32]()
	adamW, sumSquares := table.AdamW, table.SumSquares
	table.AdamW = func(p, g, m, v []float32, o cpu.AdamStep) {
		began := now()
		adamW(p, g, m, v, o)
		took({{index . 0}}, began)
	}
	table.SumSquares = func(x []float32) float64 {
		began := now()
		sum := sumSquares(x)
		took({{index . 0}}+1, began)
		return sum
	}
}

func now() time.Time { return time.Now() }

// Call has what the calls of a place took in each step.
type Call struct {
	Count int
	Took  []float64
}

var Calls [{{index . 1}}]Call

var spent, count [{{index . 1}}]atomic.Int64

func took(i int, began time.Time) {
	spent[i].Add(int64(time.Since(began)))
	count[i].Add(1)
}

// Step ends a step.
func Step(counts bool) {
	for i := range Calls {
		if counts {
			Calls[i].Count = int(count[i].Load())
			Calls[i].Took = append(Calls[i].Took, time.Duration(spent[i].Load()).Seconds())
		}
		spent[i].Store(0)
		count[i].Store(0)
	}
}
`

const timedMain = `package main

import (
	"context"
	"encoding/json"
	"log"
	"log/slog"
	"os"
	"runtime"
	"strconv"

	"calls/timed"
	rt "` + module + `/runtime"
)

func main() {
	steps, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	threads, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	runtime.GOMAXPROCS(threads)
	var report struct {
		Steps []float64
		Calls []timed.Call
	}
	onStep := func(s rt.Step) error {
		timed.Step(s.Step > 2)
		if s.Step > 2 {
			report.Steps = append(report.Steps, s.Seconds)
		}
		return nil
	}
	if _, err := timed.Run(context.Background(), rt.Dir(os.Args[1]), rt.Resume("never"), rt.Set("train.steps", steps),
		rt.OnStep(onStep), rt.Logger(slog.New(slog.DiscardHandler))); err != nil {
		log.Fatal(err)
	}
	report.Calls = timed.Calls[:]
	text, err := json.Marshal(report)
	if err == nil {
		err = os.WriteFile(os.Args[3], text, 0o666)
	}
	if err != nil {
		log.Fatal(err)
	}
}
`
