package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa writes the functions with which package asm queries the processor.
func isa(c *build.Context) {
	function(c, "cpuid", "func(leaf, sub uint32) (a, b, c, d uint32)",
		"cpuid returns the processor's description of itself.")
	c.Load(c.Param("leaf"), reg.EAX)
	c.Load(c.Param("sub"), reg.ECX)
	c.CPUID()
	for i, r := range []reg.Register{reg.EAX, reg.EBX, reg.ECX, reg.EDX} {
		c.Store(r, c.ReturnIndex(i))
	}
	c.RET()

	function(c, "xgetbv", "func() (lo, hi uint32)", "xgetbv returns XCR0: which registers the operating system saves.")
	c.XORL(reg.ECX, reg.ECX)
	c.XGETBV()
	c.Store(reg.EAX, c.ReturnIndex(0))
	c.Store(reg.EDX, c.ReturnIndex(1))
	c.RET()

	function(c, "rdpid", "func() (aux uint32)",
		"rdpid returns IA32_TSC_AUX, which the operating system has set for the present core: on Linux 12 bits "+
			"hold the core's number.")
	raw(c, "RDPID", 0xf3, 0x0f, 0xc7, 0xf8) // RDPID RAX, which Go's assembler does not support
	c.Store(reg.EAX, c.ReturnIndex(0))
	c.RET()

	function(c, "Pause", "func(n uint32)", "Pause computes", "", "\tfor range n { PAUSE }", "",
		"It signals the processor that the thread waits in a loop. n > 0.")
	n := c.Load(c.Param("n"), c.GP32())
	c.Label("again")
	c.PAUSE()
	c.DECL(n)
	c.JNZ(operand.LabelRef("again"))
	c.RET()
}

// function begins a function without a frame that calls nothing.
func function(c *build.Context, name, signature string, doc ...string) {
	c.Function(name)
	c.Attributes(attr.NOSPLIT)
	c.SignatureExpr(signature)
	c.Doc(doc...)
}
