package ir

import (
	"fmt"
	"strings"
)

// The formats of 8 bits to which operands of products are rounded (Attr.In, two of them with a comma between). Each
// tensor that a rank has is scaled by a power of two for its own largest magnitude. E4M3 has 4 bits of exponent and is
// for what forward multiplies, E5M2 has 5 and is for gradients; package num of the runtime has what they hold.
const (
	E4M3 = "e4m3"
	E5M2 = "e5m2"
)

// FP8Matmuls are the formats of 8 bits that a product's operands are rounded to, "" for none.
func (n *Node) FP8Matmuls() (a, b string) {
	a, b, _ = strings.Cut(n.Attr.In, ",")
	return a, b
}

// eightName is what plans call the type that they compute in where products are in 8 bits.
const eightName = "f8"

// ComputeName is the name of Compute as plans print it, f8 where products round their operands.
func (p Precision) ComputeName() string {
	if p.FP8 {
		return eightName
	}
	return p.Compute.String()
}

func wrongEights(n *Node) string {
	if n.Attr.In == "" {
		return ""
	}
	a, b := n.FP8Matmuls()
	for _, e := range []string{a, b} {
		if e != E4M3 && e != E5M2 {
			return fmt.Sprintf("in=%s; want two of %s and %s with a comma between", n.Attr.In, E4M3, E5M2)
		}
	}
	if a == E5M2 && b == E5M2 {
		return "no machine multiplies e5m2 with e5m2"
	}
	return ""
}
