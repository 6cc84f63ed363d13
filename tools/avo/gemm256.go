package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ymm are the vector registers of AVX2.
var ymm = []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9,
	reg.Y10, reg.Y11,
	reg.Y12, reg.Y13, reg.Y14, reg.Y15}

// gemm256 writes the matmuls with AVX2: 6 rows of two vectors are 12 sums. b's two vectors and two of a's
// elements fill the other registers.
func gemm256(c *build.Context) {
	f32 := micro256("GemmF32AVX2", 4, 8)
	f32.load = func(c *build.Context, from, to operand.Op) { c.VMOVUPS(from, to) }
	f32.store = f32.load
	f32.broadcast = func(c *build.Context, from, to operand.Op) { c.VBROADCASTSS(from, to) }
	f32.add = func(c *build.Context, x, y, sum operand.Op) { c.VADDPS(x, y, sum) }
	f32.multiplyAdd = func(c *build.Context, x, y, sum operand.Op) { c.VFMADD231PS(x, y, sum) }
	f32.maskedLoad = func(c *build.Context, v int, from, to operand.Op) { c.VMASKMOVPS(from, ymm[v], to) }
	f32.maskedStore = func(c *build.Context, v int, from, to operand.Op) { c.VMASKMOVPS(from, ymm[v], to) }
	f32.emit(c)

	f64 := micro256("GemmF64AVX2", 8, 4)
	f64.load = func(c *build.Context, from, to operand.Op) { c.VMOVUPD(from, to) }
	f64.store = f64.load
	f64.broadcast = func(c *build.Context, from, to operand.Op) { c.VBROADCASTSD(from, to) }
	f64.add = func(c *build.Context, x, y, sum operand.Op) { c.VADDPD(x, y, sum) }
	f64.multiplyAdd = func(c *build.Context, x, y, sum operand.Op) { c.VFMADD231PD(x, y, sum) }
	f64.maskedLoad = func(c *build.Context, v int, from, to operand.Op) { c.VMASKMOVPD(from, ymm[v], to) }
	f64.maskedStore = func(c *build.Context, v int, from, to operand.Op) { c.VMASKMOVPD(from, ymm[v], to) }
	f64.emit(c)
}

// micro256 keeps the masks, which the strip has as vectors, in b's registers, which are free outside the
// loop over k.
func micro256(name string, bytes, lanes int) *micro {
	return &micro{
		name: name, rows: 6, bytes: bytes, lanes: lanes, vecs: 2, first: 4, factors: 2, operands: 0, keeps: true,
		vec:   func(i int) reg.VecPhysical { return ymm[i] },
		zero:  func(c *build.Context, v operand.Op) { c.VXORPS(v, v, v) },
		setup: func(*build.Context, operand.Mem) {},
		masks: func(c *build.Context, t operand.Mem) {
			for v := range 2 {
				c.VMOVUPS(t.Offset(stripMask+v*lanes*bytes), ymm[v])
			}
		},
	}
}
