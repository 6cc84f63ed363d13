package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// zmm are the vector registers of AVX-512.
var zmm = []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9,
	reg.Z10, reg.Z11,
	reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
	reg.Z24, reg.Z25,
	reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31}

// gemm512 writes the matmuls with AVX-512: 12 rows of two vectors are 24 sums. b's two vectors and six of
// a's elements fill the other registers. A step of k has 14 loads for 24 multiply-adds; a cycle can do two
// of each.
func gemm512(c *build.Context) {
	f32 := micro512("GemmF32AVX512", 4, 16)
	f32.load = func(c *build.Context, from, to operand.Op) { c.VMOVUPS(from, to) }
	f32.store = f32.load
	f32.broadcast = func(c *build.Context, from, to operand.Op) { c.VBROADCASTSS(from, to) }
	f32.add = func(c *build.Context, x, y, sum operand.Op) { c.VADDPS(x, y, sum) }
	f32.multiplyAdd = func(c *build.Context, x, y, sum operand.Op) { c.VFMADD231PS(x, y, sum) }
	f32.maskedLoad = func(c *build.Context, v int, from, to operand.Op) { c.VMOVUPS_Z(from, mask512[v], to) }
	f32.maskedStore = func(c *build.Context, v int, from, to operand.Op) { c.VMOVUPS(from, mask512[v], to) }
	f32.emit(c)

	wide := *f32 // 8 rows of three vectors: 11 loads for 24 multiply-adds
	wide.name, wide.rows, wide.vecs, wide.factors = "GemmF32AVX512Wide", 8, 3, 3
	wide.emit(c)

	f64 := micro512("GemmF64AVX512", 8, 8)
	f64.load = func(c *build.Context, from, to operand.Op) { c.VMOVUPD(from, to) }
	f64.store = f64.load
	f64.broadcast = func(c *build.Context, from, to operand.Op) { c.VBROADCASTSD(from, to) }
	f64.add = func(c *build.Context, x, y, sum operand.Op) { c.VADDPD(x, y, sum) }
	f64.multiplyAdd = func(c *build.Context, x, y, sum operand.Op) { c.VFMADD231PD(x, y, sum) }
	f64.maskedLoad = func(c *build.Context, v int, from, to operand.Op) { c.VMOVUPD_Z(from, mask512[v], to) }
	f64.maskedStore = func(c *build.Context, v int, from, to operand.Op) { c.VMOVUPD(from, mask512[v], to) }
	f64.emit(c)
}

// mask512 has ones for the existing columns of each vector of a row.
var mask512 = []reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3}

func micro512(name string, bytes, lanes int) *micro {
	return &micro{
		name: name, rows: 12, bytes: bytes, lanes: lanes, vecs: 2, first: 8, factors: 2, operands: 0, keeps: true,
		vec:   func(i int) reg.VecPhysical { return zmm[i] },
		zero:  func(c *build.Context, v operand.Op) { c.VPXORQ(v, v, v) },
		setup: func(c *build.Context, t operand.Mem) { masks512(c, t.Offset(stripNs), lanes) },
		masks: func(*build.Context, operand.Mem) {},
	}
}

// masks512 sets the masks for n columns.
func masks512(c *build.Context, n operand.Mem, lanes int) {
	bits := c.GP64()
	c.MOVQ(operand.I64(-1), bits)
	count := c.GP64()
	c.MOVQ(n, count)
	c.BZHIQ(count, bits, bits)
	c.KMOVW(bits.As32(), mask512[0])
	c.SHRQ(operand.U8(lanes), bits)
	c.KMOVW(bits.As32(), mask512[1])
	c.SHRQ(operand.U8(lanes), bits)
	c.KMOVW(bits.As32(), mask512[2])
}
