package vex

import (
	"strings"
	"testing"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/reg"
)

// sum returns the error of Check for a function that needs count vector registers at once.
func sum(t *testing.T, count int) error {
	t.Helper()
	c := build.NewContext()
	c.Function("sum")
	c.SignatureExpr("func()")
	values := make([]reg.VecVirtual, count)
	for i := range values {
		values[i] = c.YMM()
		c.VXORPS(values[i], values[i], values[i])
	}
	for _, v := range values[1:] {
		c.VADDPS(v, values[0], values[0])
	}
	c.RET()
	file, err := c.Result()
	if err == nil {
		err = pass.Compile.Execute(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Check(file)
}

func TestInstructionsOfAVX512AreRefused(t *testing.T) {
	c := build.NewContext()
	c.Function("floor")
	c.SignatureExpr("func()")
	v := c.YMM()
	c.VXORPS(v, v, v)
	c.VRNDSCALEPS(operand.U8(1), v, v)
	c.RET()
	file, err := c.Result()
	if err == nil {
		err = pass.Compile.Execute(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = Check(file)
	if err == nil || !strings.HasPrefix(err.Error(), "floor uses VRNDSCALEPS, which needs AVX512") {
		t.Errorf("got %v", err)
	}
}

func TestRegistersOfAVX512AreRefused(t *testing.T) {
	if err := sum(t, 16); err != nil {
		t.Errorf("16 registers: %v", err)
	}
	const want = "sum uses Y16 in VXORPS, but AVX2 has 16 vector registers: process fewer vectors at a time"
	if err := sum(t, 17); err == nil || err.Error() != want {
		t.Errorf("17 registers: got %v, want %s", err, want)
	}
}
