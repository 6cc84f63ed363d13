package price

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
	"github.com/planc-dev/planc/passes/search/internal/problems"
)

// The passes that are priced are the calls that are emitted: each function of a plan's program, as Go code, has as many
// GEMMs and as many other calls as the profile that prices the plan has ops. On a GPU, a priced GEMM has the bytes of
// the operands in its call: those of the matmul, and of what the call computes in addition.
func TestPricedPassesAreEmitted(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 9))
	found := emittedCalls{}
	for i := range draws(120) {
		p := randomProblem(t, r)
		if i%2 > 0 { // most epilogues are for GPUs, in 16 bits, and some for CPUs, in 32 bits
			on, precision := "dgx-h100", problems.Precisions[2+r.IntN(7)]
			if i%4 > 1 {
				on, precision = "cpu", problems.Precisions[0]
			}
			p = problem(cluster(t, on, 1, []int{1, 2, 4, 8}[r.IntN(4)]), gpt2Config(3, 32, 4, 64, 16), 16, 16,
				precision)
		}
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, plan := range problems.PlansOf(p).Uneven(t, r, 4) {
			checkEmittedCalls(t, s, plan, found)
		}
	}
	t.Log(found)
	for _, call := range []string{"gpu.MatMul", "gpu.MatMulOn", "gpu.MatMulOnBoth", "gpu.MatMulGelu",
		"gpu.MatMulGeluGrad", "gpu.MatMulBiasGrad", "gpu.MatMulEach", "gpu.LayerNormGrads", "gpu.RMSNormGrads",
		"kern.MatMulOn", "kern.MatMulThen"} {
		if found[call] < 3 {
			t.Errorf("%s was drawn %d times", call, found[call])
		}
	}
}

// emittedCalls counts calls by function.
type emittedCalls map[string]int

// checkEmittedCalls compares the functions of a plan's program with their profiles.
func checkEmittedCalls(t *testing.T, s *Pricer, plan ir.Plan, found emittedCalls) {
	t.Helper()
	prog, err := passes.Compile(s.problem.Model, plan, s.problem.Recipe, passes.Options{})
	if err != nil {
		t.Fatalf("%v: %v", plan, err)
	}
	on := codegen.GPU
	if s.cpu {
		on = codegen.CPU
	}
	src, err := codegen.Go(codegen.Input{Program: prog, Target: on, Package: "train"})
	if err != nil {
		t.Fatalf("%v: %v", plan, err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	b := s.base(plan)
	for _, v := range b.prog.Model.Variants() {
		for i, f := range []*ir.Func{v.Forward, v.Backward, v.Weights} {
			e := emittedFunction{floatBytes: floatBytes(&plan.Precision), views: map[string]view{}}
			if f == nil || !e.read(file, f.Name) { // no stage runs it
				continue
			}
			for _, call := range e.calls {
				found[call.name]++
			}
			ops := b.segment(v).functions()[i].ops
			for _, n := range f.Nodes {
				if _, moves := n.Collective(b.prog.Mesh); n.Op == ir.OpRounds && !moves {
					e.calls = append(e.calls, emittedCall{name: "Rounds"})
				}
			}
			e.compare(t, fmt.Sprintf("%s %s", plan.Text(), f.Name), ops, plan.MicroBatch, s.cpu)
		}
	}
}

// emittedFunction is a function of generated code.
type emittedFunction struct {
	floatBytes int // of an element in the kernels' type
	views      map[string]view
	calls      []emittedCall
}

// view is a variable that is a part of the arena.
type view struct {
	bytes    int
	gradient bool
}

// emittedCall is a call of a kernel, with the views among its operands.
type emittedCall struct {
	name  string
	views []string
}

// floatBytes returns the bytes of an element in the type in which kernels compute.
func floatBytes(p *ir.Precision) int {
	if p.Compute == ir.F64 {
		return 8
	}
	return 4
}

// read reads the function of that name, and reports whether the file has it.
func (e *emittedFunction) read(file *ast.File, name string) bool {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && strings.Contains(f.Doc.Text(), " is "+name+", of which ") {
			e.statements(f.Body.List)
			return true
		}
	}
	return false
}

// statements reads statements. What follows a call that a library refuses is not read.
func (e *emittedFunction) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			e.call(s.X)
		case *ast.IfStmt:
			e.call(s.Cond.(*ast.UnaryExpr).X)
		case *ast.AssignStmt:
			e.assignment(s)
		case *ast.RangeStmt:
			e.loop(s.X, s.Body)
		case *ast.ForStmt:
			e.loop(nil, s.Body)
		}
	}
}

// loop reads a loop: over the rounds of experts, or around the kernel of one op.
func (e *emittedFunction) loop(over ast.Expr, body *ast.BlockStmt) {
	before := len(e.calls)
	e.statements(body.List)
	if id, ok := over.(*ast.Ident); ok && id.Name == "rounds" {
		return
	}
	e.calls = e.calls[:min(len(e.calls), before+1)]
}

// assignment reads a view, or an op that the function computes itself.
func (e *emittedFunction) assignment(s *ast.AssignStmt) {
	to, ok := s.Lhs[0].(*ast.Ident)
	if !ok {
		e.calls = append(e.calls, emittedCall{name: "="})
		return
	}
	call, ok := s.Rhs[0].(*ast.CallExpr)
	if !ok {
		return
	}
	name := callName(call)
	if !strings.HasSuffix(name, ".View") {
		return
	}
	elem := call.Fun.(*ast.IndexExpr).Index
	n, err := strconv.Atoi(call.Args[2].(*ast.BasicLit).Value)
	if err != nil {
		panic(err)
	}
	size := map[string]int{"float": e.floatBytes, "int32": 4}
	if id, ok := elem.(*ast.Ident); ok {
		n *= size[id.Name]
	} else {
		n *= 2 // num.BF16 or num.F16
	}
	v := view{bytes: n}
	ast.Inspect(call.Args[1], func(x ast.Node) bool {
		if id, ok := x.(*ast.Ident); ok && id.Name == "Grads" {
			v.gradient = true
		}
		return true
	})
	e.views[to.Name] = v
}

// callName returns the name of the function that is called, with its package.
func callName(c *ast.CallExpr) string {
	fun := c.Fun
	if x, ok := fun.(*ast.IndexExpr); ok {
		fun = x.X
	}
	if x, ok := fun.(*ast.SelectorExpr); ok {
		if id, ok := x.X.(*ast.Ident); ok {
			return id.Name + "." + x.Sel.Name
		}
	}
	return ""
}

// noOps are calls that are collectives, or parts of other calls: the copies of what a ring's turn adds to, and on a CPU
// those of 16-bit values and of indices.
var noOps = []string{"AllReduce", "ReduceScatter", "AllGather", "AllToAll", "Shift", "Rounds", "Copy", "CapIDs",
	"Narrow", "FreeScratch"}

// call reads a call.
func (e *emittedFunction) call(x ast.Expr) {
	c := x.(*ast.CallExpr)
	name := callName(c)
	_, short, _ := strings.Cut(strings.TrimSuffix(name, "Zigzag"), ".")
	if name == "" || slices.Contains(noOps, short) {
		return
	}
	out := emittedCall{name: name}
	for _, a := range c.Args {
		ast.Inspect(a, func(x ast.Node) bool {
			if kv, ok := x.(*ast.KeyValueExpr); ok { // not the names of fields
				x = kv.Value
			}
			if id, ok := x.(*ast.Ident); ok && e.views[id.Name].bytes > 0 && !slices.Contains(out.views, id.Name) {
				out.views = append(out.views, id.Name)
			}
			return true
		})
	}
	e.calls = append(e.calls, out)
}

// isGEMM reports whether a call is a GEMM, or one per group.
func (c *emittedCall) isGEMM() bool { return strings.Contains(c.name, ".MatMul") }

// compare compares the calls with ops that are priced at a micro-batch. On a CPU, 16-bit values are copied to calls.
func (e *emittedFunction) compare(t *testing.T, where string, ops []linearOp, micro int, cpu bool) {
	t.Helper()
	var gemms []costmodel.Op
	for i := range ops {
		if o := ops[i].at.Grown(&ops[i].slope, float64(micro-1)); o.Kind == costmodel.Matrix {
			gemms = append(gemms, o)
		}
	}
	var calls []emittedCall
	for _, c := range e.calls {
		if c.isGEMM() {
			calls = append(calls, c)
		}
	}
	if len(calls) != len(gemms) || len(e.calls) != len(ops) {
		t.Errorf("%s: %d GEMMs and %d other ops are priced, and %d and %d emitted: %v", where, len(gemms),
			len(ops)-len(gemms), len(calls), len(e.calls)-len(calls), e.calls)
		return
	}
	for i := range calls {
		want, got := 0, gemms[i].Bytes+gemms[i].Fused.Bytes
		for j, name := range calls[i].views {
			want += e.views[name].bytes
			if j == 0 && e.views[name].gradient { // it is read too
				want += e.views[name].bytes
			}
		}
		if !cpu && got != float64(want) {
			t.Errorf("%s: %v is priced with %v bytes, and its operands have %v", where, calls[i], got, want)
		}
	}
}
