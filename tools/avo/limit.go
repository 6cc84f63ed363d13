package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// limit writes the loops with which bench/gemm measures how many multiply-adds a core does per second.
func limit(c *build.Context) {
	for _, l := range []struct {
		name string
		regs []reg.VecPhysical
		sums int
	}{{"fma512", zmm, 24}, {"fma256", ymm, 12}} {
		function(c, l.name, "func(steps uint64)",
			fmt.Sprintf("%s does %d multiply-adds of whole vectors per step; each sum depends only on itself.",
				l.name, l.sums))
		steps := c.Load(c.Param("steps"), c.GP64())
		for _, v := range l.regs[:l.sums+1] {
			if l.name == "fma512" {
				c.VPXORQ(v, v, v)
			} else {
				c.VXORPS(v, v, v)
			}
		}
		c.Label("step")
		for _, v := range l.regs[:l.sums] {
			c.VFMADD231PS(l.regs[l.sums], l.regs[l.sums], v)
		}
		c.DECQ(steps)
		c.JNZ(operand.LabelRef("step"))
		c.VZEROUPPER()
		c.RET()
	}
}
