package ir

import (
	"fmt"
	"strings"
)

// The FP8 formats to which the operands of matmuls are rounded (Attr.In has two of them, separated by a comma). A rank
// scales each of its tensors by a power of two according to its largest magnitude. E4M3 has 4 exponent bits and is for
// operands of the forward pass; E5M2 has 5 and is for gradients. Package num of the runtime has the values of the
// formats.
const (
	E4M3 = "e4m3"
	E5M2 = "e5m2"
)

// FP8Matmuls returns the FP8 formats to which a matmul's operands are rounded, "" if they are not.
func (n *Node) FP8Matmuls() (a, b string) {
	a, b, _ = strings.Cut(n.Attr.In, ",")
	return a, b
}

// fp8Name is the name of the compute type in plans whose matmuls are in FP8.
const fp8Name = "f8"

// ComputeName returns the name of Compute as plans print it: f8 if matmuls round their operands to FP8.
func (p Precision) ComputeName() string {
	if p.FP8 {
		return fp8Name
	}
	return p.Compute.String()
}

func wrongFP8(n *Node) string {
	if n.Attr.In == "" {
		return ""
	}
	a, b := n.FP8Matmuls()
	for _, e := range []string{a, b} {
		if e != E4M3 && e != E5M2 {
			return fmt.Sprintf("in=%s; it must be two of %s and %s, separated by a comma", n.Attr.In, E4M3, E5M2)
		}
	}
	if a == E5M2 && b == E5M2 {
		return "no hardware multiplies e5m2 by e5m2"
	}
	return ""
}
