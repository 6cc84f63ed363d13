package codegen

import (
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/fusion"
	"github.com/planc-dev/planc/runtime/program"
)

// matMulCall writes the call of a matmul, and of the ops that the call also computes.
type matMulCall struct {
	*emitter
	n                         *ir.Node
	also                      *fusion.Call // what the call computes in addition
	a, b                      *ir.Value
	groups, rows, cols, terms int // local sizes; groups is 0 for one GEMM
	transA, transB            bool
}

// write writes the call for the types of the operands and what the matmul is fused with.
func (c *matMulCall) write() {
	switch {
	case c.n.Attr.In != "":
		c.fp8()
	case c.also.Epilogue != nil:
		c.withEpilogue(c.also.Epilogue)
	case c.also.RowSum != nil:
		c.withRowSum(c.also.RowSum)
	default:
		c.plain()
	}
}

// operands returns the operands of a GEMM, their sizes and whether they are transposed.
func (c *matMulCall) operands() []any {
	return []any{c.a, c.b, c.rows, c.cols, c.terms, c.transA, c.transB}
}

// plain writes one GEMM, or one per group. It reads bf16 operands as they are stored. The sums are written, rounded, or
// added to the result or to the C operand.
func (c *matMulCall) plain() {
	bias := c.also.Bias
	c.registerGEMM(program.GEMM{Bias: bias != nil || c.isBias(c.also.C)})
	args := append([]any{c.n.Outs[0]}, c.operands()...)
	name := "MatMul"
	if c.groups > 0 {
		name, args = "MatMulEach", slices.Insert(args, 3, any(c.groups))
	}
	switch from := c.also.C; {
	case bias != nil:
		c.call(c.runtime("MatMulOnBoth"), jen.Id("r"), c.addends(from, bias))
	case c.gpu() && from == nil:
		c.kernel(name, append(args, c.adding(c.n))...)
	case from != nil:
		c.kernel("MatMulOn", append([]any{c.n.Outs[0], from}, c.operands()...)...)
	case c.n.Matmuls16() && c.n.Outs[0].Type.Elem == ir.BF16 && !ir.Accumulates(c.n):
		c.call(jen.Id("kern").Dot(name+"RoundBF16"), args...)
	case c.n.Matmuls16():
		c.kernel(name+"BF16", append(args, c.adding(c.n))...)
	default:
		c.kernel(name, append(args, c.adding(c.n))...)
	}
}

// addends returns the operands of a matmul that adds a residual and a bias, as package gpu has them.
func (c *matMulCall) addends(residual, bias *ir.Value) jen.Code {
	value := func(v *ir.Value) jen.Code { return jen.Id(c.name(v)) }
	fields := jen.Dict{
		jen.Id("C"): value(c.n.Outs[0]), jen.Id("Residual"): value(residual), jen.Id("Bias"): value(bias),
		jen.Id("A"): value(c.a), jen.Id("B"): value(c.b), jen.Id("M"): jen.Lit(c.rows), jen.Id("N"): jen.Lit(c.cols),
		jen.Id("K"): jen.Lit(c.terms)}
	if c.transA {
		fields[jen.Id("TransposeA")] = jen.True()
	}
	if c.transB {
		fields[jen.Id("TransposeB")] = jen.True()
	}
	return jen.Qual(gpuPath, "AddingGEMM").Index(elemCode(c.n.Outs[0].Type)).Values(fields)
}

// fp8 writes a matmul whose operands are rounded to FP8. On a CPU these are copies in the scratch.
func (c *matMulCall) fp8() {
	left, right := c.n.FP8Matmuls()
	if c.a != c.n.Args[0] {
		left, right = right, left
	}
	c.registerGEMM(program.GEMM{FP8A: left, FP8B: right})
	format := map[string]jen.Code{ir.E4M3: jen.Qual(numPath, "E4M3"), ir.E5M2: jen.Qual(numPath, "E5M2")}
	args := slices.Insert(append([]any{c.n.Outs[0]}, c.operands()...), 3, any(c.groups))
	c.kernel("MatMul8", append(args, c.adding(c.n), format[left], format[right])...)
}

// epilogueNames are the names of a matmul's epilogues in the CPU's kernels. Package vec has loops for them over rows
// that are not adjacent.
var epilogueNames = map[ir.Op]string{ir.OpGelu: "Gelu", ir.OpGeluGrad: "GeluGrad", ir.OpAdd: "Add"}

// withEpilogue writes a matmul with its epilogue: one call, or on a GPU the separate ops if the library refuses the
// call.
func (c *matMulCall) withEpilogue(node *ir.Node) {
	c.results(node)
	op := ir.SingleOp(node)
	if !c.gpu() {
		args := append([]any{op.Outs[0]}, c.epilogueOperands(op)...)
		args = append(args, c.a, c.b, jen.Qual(cpuPath, "Do"+epilogueNames[op.Op]))
		c.kernel("MatMulThen", append(args, c.operands()[2:]...)...)
		return
	}
	kind := program.GEMM{Epilogue: program.GELUGrad}
	name, call := "MatMulGeluGrad", []any{jen.Id("r"), op.Outs[0], op.Args[len(op.Args)-1]}
	if op.Op == ir.OpGelu {
		name, call = "MatMulGelu", []any{jen.Id("r"), op.Outs[0], c.missing(c.now.Outs[0].Type),
			c.missing(c.now.Outs[0].Type)}
		if c.also.KeepsResult {
			call[2] = c.n.Outs[0]
		}
		from := c.also.C
		if from != nil {
			call[3] = from
		}
		kind = program.GEMM{Epilogue: program.GELU, Bias: c.isBias(from), KeepsInput: c.also.KeepsResult}
	}
	c.registerGEMM(kind)
	c.unless(c.calling(c.runtime(name), append(call, c.operands()...)...), func() {
		c.plain()
		c.now = node
		emitLoop(c.emitter, node)
	})
}

// epilogueOperands returns what the kernel MatMulThen also reads and writes: the matmul's own result, the C operand and
// the epilogue's other operand, each nil if there is none.
func (c *matMulCall) epilogueOperands(op *ir.Node) []any {
	orNil := func(v *ir.Value) any {
		if v == nil {
			return jen.Nil()
		}
		return v
	}
	result := c.n.Outs[0]
	if !c.also.KeepsResult {
		result = nil
	}
	return []any{orNil(result), orNil(c.also.C), orNil(ir.OtherOperand(op, c.n.Outs[0]))}
}

// withRowSum writes a matmul with the sum of its right operand's rows: one call, or both ops if the library refuses the
// call.
func (c *matMulCall) withRowSum(sum *ir.Node) {
	c.results(sum)
	c.registerGEMM(program.GEMM{Epilogue: program.RowSum})
	call := append([]any{jen.Id("r"), c.n.Outs[0], sum.Outs[0]}, append(c.operands(), c.adding(c.n))...)
	c.unless(c.calling(c.runtime("MatMulBiasGrad"), call...), func() {
		c.plain()
		c.now = sum
		emitReduceSum(c.emitter, sum)
	})
}
