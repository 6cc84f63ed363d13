//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/num"
)

// eightCodes are the formats of 8 bits as the kernels of fp8.cu and cuBLASLt number them.
var eightCodes = map[num.FP8Format]struct {
	format int
	value  cuda.Value
}{num.E4M3: {0, cuda.ValueE4M3}, num.E5M2: {1, cuda.ValueE5M2}}

// MatMul8 is the loop of that name of package cpu: MatMul, or MatMulEach of groups if there are some, of a and b as
// formats of 8 bits hold them. They are copied in these for cuBLASLt. Where it does not take the product, as before
// Hopper and Ada, or where rows of c are of no whole eights, the rounded numbers are multiplied as bf16, which holds
// them all: the sums are of the same numbers.
func MatMul8[C num.Stored](r *rt.Rank, c Buf[C], a, b Buf[num.BF16], groups, m, n, k int, ta, tb, acc bool,
	as, bs num.FP8Format) {
	d := of(r)
	p := cuda.GEMM{Batch: groups, M: m, N: n, K: k, TransposeA: ta, TransposeB: tb, In: cuda.ValueBFloat16}
	out := value(suffix[C]())
	p.Out = out
	if out != cuda.ValueBFloat16 {
		p.Out = cuda.ValueFloat32
	}
	batch, width := max(groups, 1), (k+15)&^15
	scales := d.rooms(workspace, 2*roomAlign)[1]
	q := p
	q.K, q.TransposeA, q.TransposeB, q.ScaleA, q.ScaleB = width, false, true, scales, scales+roomAlign
	q.In, q.InB = eightCodes[as].value, eightCodes[bs].value
	sizes := []int{batch * m * width, batch * n * width}
	eight := d.takes(q)
	if !eight {
		sizes, q = []int{2 * a.N, 2 * b.N}, p
	}
	room := d.rooms(workspace, 2*roomAlign, roomOf[C, num.BF16](c.N), mostBytes, sizes[0], sizes[1])
	if eight { // the scratch may have moved
		q.ScaleA, q.ScaleB = room[1], room[1]+roomAlign
		d.eight(a, eightCopy{room[4], room[3], room[1], batch, m, k, width, ta, eightCodes[as].format})
		d.eight(b, eightCopy{room[5], room[3], room[1] + roomAlign, batch, n, k, width, !tb, eightCodes[bs].format})
	} else {
		d.eightRound(a, room[4], room[3], eightCodes[as].format)
		d.eightRound(b, room[5], room[3], eightCodes[bs].format)
	}
	if q.Out == out {
		d.multiply(q, at(d, c), added(at(d, c), acc), room[4], room[5])
		return
	}
	summed[C, num.BF16](d, c, room[2], acc, func(to cuda.Pointer) {
		d.multiply(q, to, added(to, acc), room[4], room[5])
	})
}

// takes tells whether cuBLASLt takes a product of 8 bits.
func (d *device) takes(p cuda.GEMM) bool {
	kind := kindOf(p)
	if _, known := d.refused[kind]; !known {
		_, err := d.multiplier(p)
		d.refused[kind] = err != nil || ours("eight")
	}
	return !d.refused[kind]
}

// eightCopy is where a tensor's codes go, by way of the parts of its largest magnitude, and its scale; the codes are
// groups of rows of cols in width bytes each, which lie across in the tensor or as they are.
type eightCopy struct {
	to, part, scale           cuda.Pointer
	groups, rows, cols, width int
	across                    bool
	format                    int
}

// mostBytes are those of the parts of a tensor's largest magnitude.
const mostBytes = 4 * 1024

// eightMost puts the parts of a tensor's largest magnitude on the current stream, and says how many there are.
func (d *device) eightMost(x Buf[num.BF16], part cuda.Pointer) int {
	d.call("eight_most", "bf16", 1, x.N, part, at(d, x), int64(x.N))
	return kernels.Blocks(x.N)
}

func (d *device) eight(x Buf[num.BF16], c eightCopy) {
	parts := d.eightMost(x, c.part)
	d.call("eight", "bf16", c.groups*c.rows, c.width, c.to, at(d, x), c.part, c.scale, parts, c.groups, c.rows, c.cols,
		c.width, c.across, c.format)
}

func (d *device) eightRound(x Buf[num.BF16], to, part cuda.Pointer, format int) {
	parts := d.eightMost(x, part)
	d.call("eight_round", "bf16", 1, x.N, to, at(d, x), part, parts, int64(x.N), format)
}
