//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/num"
)

// fp8Codes maps the FP8 formats to their numbers in the kernels of fp8.cu and in cuBLASLt.
var fp8Codes = map[num.FP8Format]struct {
	format int
	value  cuda.Value
}{num.E4M3: {0, cuda.ValueE4M3}, num.E5M2: {1, cuda.ValueE5M2}}

// MatMul8 computes cpu.MatMul8: MatMul (or MatMulEach if there are groups) of a and b rounded to FP8
// formats. The operands are quantized into FP8 copies for cuBLASLt. cuBLASLt does not support the GEMM on
// GPUs before Ada and Hopper, or if the rows of c are not multiples of 8. Then the rounded numbers are
// multiplied as bf16, which represents all of them exactly, so that the sums are over the same numbers.
func MatMul8[C num.Stored](r *rt.Rank, c Buf[C], a, b Buf[num.BF16], groups, m, n, k int, ta, tb, acc bool,
	as, bs num.FP8Format) {
	d := deviceOf(r)
	p := cuda.GEMM{Batch: groups, M: m, N: n, K: k, TransposeA: ta, TransposeB: tb, In: cuda.ValueBFloat16}
	out := valueType(suffix[C]())
	p.Out = out
	if out != cuda.ValueBFloat16 {
		p.Out = cuda.ValueFloat32
	}
	scales := d.scratchParts(workspace, 2*partAlign)[1]
	q := fp8GEMM(p, as, bs, [2]cuda.Pointer{scales, scales + partAlign})
	batch, width := max(groups, 1), q.K
	sizes := []int{batch * m * width, batch * n * width}
	fp8 := d.supportsFP8(q)
	if !fp8 {
		sizes, q = []int{2 * a.N, 2 * b.N}, p
	}
	room := d.scratchParts(workspace, 2*partAlign, sumScratch[C, num.BF16](c.N), absmaxBytes, sizes[0], sizes[1])
	if fp8 { // the scratch memory may have moved
		q.ScaleA, q.ScaleB = room[1], room[1]+partAlign
		d.fp8Quantize(a, fp8Copy{room[4], room[3], room[1], batch, m, k, width, ta, fp8Codes[as].format})
		d.fp8Quantize(b, fp8Copy{room[5], room[3], room[1] + partAlign, batch, n, k, width, !tb, fp8Codes[bs].format})
	} else {
		d.fp8Round(a, room[4], room[3], fp8Codes[as].format)
		d.fp8Round(b, room[5], room[3], fp8Codes[bs].format)
	}
	if q.Out == out {
		d.gemm(q, addr(d, c), betaOperand(addr(d, c), acc), room[4], room[5])
		return
	}
	withSums[C, num.BF16](d, c, room[2], acc, func(to cuda.Pointer) {
		d.gemm(q, to, betaOperand(to, acc), room[4], room[5])
	})
}

// fp8GEMM returns a GEMM on FP8 copies of the operands, whose rows are padded.
func fp8GEMM(p cuda.GEMM, as, bs num.FP8Format, scales [2]cuda.Pointer) cuda.GEMM {
	p.K, p.TransposeA, p.TransposeB, p.ScaleA, p.ScaleB = (p.K+15)&^15, false, true, scales[0], scales[1]
	p.In, p.InB = fp8Codes[as].value, fp8Codes[bs].value
	return p
}

// supportsFP8 reports whether cuBLASLt supports an FP8 GEMM.
func (d *gemmRunner) supportsFP8(p cuda.GEMM) bool {
	kind := gemmKind(p)
	if _, known := d.refused[kind]; !known {
		_, err := d.gemmPlan(p)
		d.refused[kind] = err != nil || (usesOwnKernel("fp8") || usesOwnKernel("eight"))
	}
	return !d.refused[kind]
}

// fp8Copy describes where a tensor's FP8 codes go, its scale, and the scratch memory for the parts of its
// absolute maximum. The codes are groups of rows of cols elements, in width bytes each. transposed says
// that the tensor stores them transposed.
type fp8Copy struct {
	to, part, scale           cuda.Pointer
	groups, rows, cols, width int
	transposed                bool
	format                    int
}

// absmaxBytes is the size of the parts of a tensor's absolute maximum.
const absmaxBytes = 4 * 1024

// fp8Absmax enqueues the computation of the parts of a tensor's absolute maximum, and returns how many
// there are.
func (d *gemmRunner) fp8Absmax(x Buf[num.BF16], part cuda.Pointer) int {
	d.exec.call("fp8_absmax", "bf16", 1, x.N, part, addr(d.exec, x), int64(x.N))
	return kernels.Blocks(x.N)
}

func (d *gemmRunner) fp8Quantize(x Buf[num.BF16], c fp8Copy) {
	parts := d.fp8Absmax(x, c.part)
	d.exec.call("fp8_quantize", "bf16", c.groups*c.rows, c.width, c.to, addr(d.exec, x), c.part, c.scale, parts,
		c.groups, c.rows, c.cols,
		c.width, c.transposed, c.format)
}

func (d *gemmRunner) fp8Round(x Buf[num.BF16], to, part cuda.Pointer, format int) {
	parts := d.fp8Absmax(x, part)
	d.exec.call("fp8_round", "bf16", 1, x.N, to, addr(d.exec, x), part, parts, int64(x.N), format)
}
