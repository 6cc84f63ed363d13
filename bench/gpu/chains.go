package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/bench/gpu/trial"
)

// fusedLaunch is one launch of a fused kernel: its name, shape and operands.
type fusedLaunch struct {
	Kernel     string
	Ops        string // in order
	Where      string // functions of the program with this launch
	Rowwise    bool   // launch geometry: kernels.Rowwise if true, else kernels.Wide
	Rows, Cols int
	Operands   []chainOperand
}

// chainOperand is an operand of a launch, as gpu.Chain takes it: a view, or a column limit.
type chainOperand struct {
	Types   string // element type; "" for a scalar column limit
	N       int    // element count; for a limit, the number of valid columns
	Pitch   int    `json:",omitempty"` // of a side of a value: the elements from row to row
	Written bool
	Indexed bool // holds one column index per row, in [Lo, Lo+Size)
	Lo      int  `json:",omitempty"`
	Size    int  `json:",omitempty"`
}

// pitch returns the elements from row to row of a side of a value, 0 if an operand is none. The view of a side ends
// with its last row, or with the value. A row of the value has whole sides.
func (c *fusedLaunch) pitch(o *chainOperand) int {
	rest := o.N - c.Cols
	switch {
	case o.N <= c.Rows*c.Cols || c.Rows == 1:
		return 0
	case rest%((c.Rows-1)*c.Cols) == 0:
		return rest / (c.Rows - 1)
	}
	return o.N / c.Rows
}

// bytes returns the number of bytes that a launch must read and write. Of a side of a value, it has one element for
// each row and column.
func (c *fusedLaunch) bytes() (b float64) {
	for _, o := range c.Operands {
		if o.Types != "" {
			b += float64(min(o.N, c.Rows*c.Cols) * trial.ElemBytes(o.Types))
		}
	}
	return b
}

// viewTypes maps the types of views in a program that computes in f32.
var viewTypes = map[string]string{"num.BF16": "bf16", "num.F16": "f16", "float": "f32", "int32": "i32"}

// writeChains writes the fused groups of a program into folder chains: their source as NAME.cu, which
// golden/laws/gpucheckchains_test.go compiles, and a list of [fusedLaunch] as NAME.json.
func (b *bench) writeChains(name, emitted string) error {
	var texts [2][]byte
	for i, file := range []string{"main.go", "kernels/chains.cu"} {
		var err error
		texts[i], err = os.ReadFile(filepath.Join(emitted, file))
		if err != nil {
			return err
		}
	}
	all, err := readChains(texts[0], texts[1])
	if err != nil {
		return fmt.Errorf("fused groups: %w", err)
	}
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	to := filepath.Join(b.dir, "chains")
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, name+".json"), append(text, '\n'), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, name+".cu"), texts[1], 0o666)
}

// chainReader reads a program's Go source.
type chainReader struct {
	all     []fusedLaunch
	rowwise map[string]bool
	ops     map[string]string
	written map[string][]bool // by kernel: whether each pointer parameter is written, in order
	views   map[string]chainOperand
	where   string
	err     error
}

// readChains finds the launches of fused groups in a CUDA program, and the declarations of their kernels. Equal
// launches are merged.
func readChains(source, kernels []byte) ([]fusedLaunch, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", source, 0)
	if err != nil {
		return nil, err
	}
	r := &chainReader{rowwise: map[string]bool{}, ops: map[string]string{}, written: map[string][]bool{}}
	r.parseKernels(string(kernels))
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok && selected(lit.Type) == "gpu.Fused" {
			r.recordGroup(lit)
		}
		return true
	})
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			r.where, r.views = f.Name.Name, map[string]chainOperand{}
			ast.Inspect(f.Body, r.visit)
		}
	}
	if r.err == nil && len(r.all) == 0 {
		r.err = fmt.Errorf("the program launches no fused groups")
	}
	return r.all, r.err
}

var (
	kernelHead = regexp.MustCompile(`(?m)^KERNEL (chain\d+)\((.*)\) \{$`)
	chainLoop  = regexp.MustCompile(`(?m)^// for i, j := range \[rows, cols\] \{ (.*) \}\n.* (chain\d+)Rows\(`)
	chainOp    = regexp.MustCompile(`= (\w+)\(`)
)

// parseKernels reads what the kernels compute, and which of their operands they write.
func (r *chainReader) parseKernels(text string) {
	for _, m := range chainLoop.FindAllStringSubmatch(text, -1) {
		var ops []string
		for _, op := range chainOp.FindAllStringSubmatch(m[1], -1) {
			ops = append(ops, op[1])
		}
		r.ops[m[2]] = strings.Join(ops, " ")
	}
	for _, m := range kernelHead.FindAllStringSubmatch(text, -1) {
		for _, p := range strings.Split(m[2], ", ") {
			if strings.Contains(p, "*") {
				r.written[m[1]] = append(r.written[m[1]], !strings.HasPrefix(p, "const "))
			}
		}
	}
}

// recordGroup records whether a fused group reduces along each row.
func (r *chainReader) recordGroup(lit *ast.CompositeLit) {
	var name string
	rowwise := false
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			switch selected(kv.Key) {
			case "Kernel":
				name, _ = strconv.Unquote(literal(kv.Value))
			case "Rowwise":
				rowwise = selected(kv.Value) == "true"
			}
		}
	}
	r.rowwise[name] = rowwise
}

// visit collects a function's views and launches.
func (r *chainReader) visit(n ast.Node) bool {
	switch x := n.(type) {
	case *ast.AssignStmt:
		if len(x.Lhs) == 1 {
			if o := r.view(x.Rhs[0]); o.Types != "" {
				r.views[selected(x.Lhs[0])] = o
			}
		}
	case *ast.CallExpr:
		if selected(x.Fun) == "gpu.Chain" && len(x.Args) > 4 {
			r.launch(x)
		}
	}
	return true
}

// view returns the view that an expression makes: a new one, the same, or the rest of one, as sides of a value are.
func (r *chainReader) view(x ast.Expr) (o chainOperand) {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return r.views[selected(x)]
	}
	switch f := call.Fun.(type) {
	case *ast.IndexExpr:
		if selected(f.X) == "gpu.View" && len(call.Args) == 3 {
			n, _ := strconv.Atoi(literal(call.Args[2])) // 0 if not a literal, which no launch may have
			return chainOperand{Types: viewTypes[selected(f.Index)], N: n}
		}
	case *ast.SelectorExpr:
		o = r.views[selected(f.X)]
		if f.Sel.Name == "From" && o.Types != "" {
			o.N -= r.parseInt(call.Args[0])
			return o
		}
	}
	return chainOperand{}
}

// launch collects one launch.
func (r *chainReader) launch(x *ast.CallExpr) {
	c := fusedLaunch{Kernel: selected(x.Args[1]), Where: r.where, Rows: r.parseInt(x.Args[2]),
		Cols: r.parseInt(x.Args[3])}
	c.Ops, c.Rowwise = r.ops[c.Kernel], r.rowwise[c.Kernel]
	written := r.written[c.Kernel]
	for _, a := range x.Args[4:] {
		o := r.operand(a)
		o.Pitch = c.pitch(&o)
		if o.Types != "" && len(written) > 0 {
			o.Written, written = written[0], written[1:]
		}
		c.Operands = append(c.Operands, o)
	}
	if c.Ops == "" || len(written) > 0 {
		r.fail("kernel %s is unknown, or its operand count differs", c.Kernel)
	}
	i := slices.IndexFunc(r.all, func(o fusedLaunch) bool {
		return o.Kernel == c.Kernel && o.Rows == c.Rows && o.Cols == c.Cols && slices.Equal(o.Operands, c.Operands)
	})
	if i < 0 {
		r.all = append(r.all, c)
	} else if !slices.Contains(strings.Split(r.all[i].Where, ", "), c.Where) {
		r.all[i].Where += ", " + c.Where
	}
}

// operand returns the operand of an expression: a view, its rows, or the number of columns.
func (r *chainReader) operand(x ast.Expr) (o chainOperand) {
	call, ok := x.(*ast.CallExpr)
	switch {
	case !ok:
		o = r.views[selected(x)]
	case selected(call.Fun) == "gpu.IDs" && len(call.Args) == 3:
		o = r.views[selected(call.Args[0])]
		o.Indexed, o.Lo, o.Size = true, r.parseInt(call.Args[1]), r.parseInt(call.Args[2])
	case selected(call.Fun) == "gpu.Limit" && len(call.Args) == 1:
		return chainOperand{N: r.parseInt(call.Args[0])}
	}
	if o.Types == "" || o.N == 0 {
		r.fail("operand is not a complete view with a constant size")
	}
	return o
}

// parseInt returns the value of an integer literal.
func (r *chainReader) parseInt(x ast.Expr) int {
	n, err := strconv.Atoi(literal(x))
	if err != nil {
		r.fail("size %s is not an integer literal", selected(x)+literal(x))
	}
	return n
}

// fail keeps the first error.
func (r *chainReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w", r.where, fmt.Errorf(format, args...))
	}
}

// selected returns the name of an identifier or of a package's member.
func selected(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return selected(x.X) + "." + x.Sel.Name
	}
	return ""
}

func literal(x ast.Expr) string {
	if l, ok := x.(*ast.BasicLit); ok {
		return l.Value
	}
	return ""
}
