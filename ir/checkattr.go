package ir

import "fmt"

// attrRules are the conditions for attributes that go beyond their types. wrong returns what is wrong, or "".
var attrRules = []struct {
	ops   []Op
	wrong func(n *Node) string
}{
	{[]Op{OpAttention, OpAttentionGrad, OpAttentionGradSides}, wrongWindow},
	{[]Op{OpAttention}, func(n *Node) string {
		if len(n.Args) == 4 {
			return "it merges a partial result without its log-sum-exp, or the log-sum-exp without the result"
		}
		return ""
	}},
	{[]Op{OpAttention, OpAttentionGrad, OpAttentionGradSides}, func(n *Node) string {
		if n.Attr.Softcap < 0 {
			return fmt.Sprintf("softcap is %v; it must be positive, or absent", n.Attr.Softcap)
		}
		return ""
	}},
	{[]Op{OpSoftcap, OpSoftcapGrad}, func(n *Node) string {
		if !(n.Attr.Softcap > 0) {
			return fmt.Sprintf("softcap is %v; it must be positive", n.Attr.Softcap)
		}
		return ""
	}},
	{[]Op{OpMatMul}, wrongFP8},
	{[]Op{OpRope}, wrongTurn},
	{[]Op{OpSide}, wrongSide},
	{[]Op{OpAttention, OpAttentionGradSides}, wrongSides},
	{[]Op{OpJoin}, wrongJoin},
	{[]Op{OpPart}, wrongPart},
	{[]Op{OpRope}, wrongScaling},
	{[]Op{OpRope}, func(n *Node) string {
		if n.Attr.Layers != "" && n.Attr.Local == 0 {
			return fmt.Sprintf("layers=%s has no effect without a local base", n.Attr.Layers)
		}
		return ""
	}},
}

// attrsMean checks that attributes have valid values, alone and together.
func attrsMean(_ *checker, f *Func) error {
	return f.each(func(n *Node) error {
		for _, rule := range attrRules {
			for _, op := range rule.ops {
				if op != n.Op {
					continue
				}
				if wrong := rule.wrong(n); wrong != "" {
					return fmt.Errorf("%s", wrong)
				}
			}
		}
		return nil
	})
}

func wrongWindow(n *Node) string {
	a := &n.Attr
	switch {
	case a.Window < 0:
		return fmt.Sprintf("window is %d; it must be a number of keys, or absent", a.Window)
	case a.Window > 0 && !a.Causal:
		return "a window needs causal: bidirectional attention has no window"
	case a.Layers != "" && a.Window == 0:
		return fmt.Sprintf("layers=%s has no effect without a window", a.Layers)
	}
	return ""
}

// turned returns how many elements of its dim a rope rotates.
func (n *Node) turned() int {
	if n.Attr.Turn != 0 {
		return n.Attr.Turn
	}
	e, _ := n.Args[0].Type.Extent(n.Attr.Dim)
	return e.Size
}

func wrongTurn(n *Node) string {
	e, ok := n.Args[0].Type.Extent(n.Attr.Dim)
	if t := n.turned(); ok && (t%2 != 0 || t < 0 || n.Attr.Offset < 0 || n.Attr.Offset+t > e.Size) {
		return fmt.Sprintf("%d of the %d elements of %s cannot be rotated in pairs", t, e.Size, n.Attr.Dim)
	}
	return ""
}

// wrongJoin checks that a join is as long as its parts together.
func wrongJoin(n *Node) string {
	_, _, a, b, d := n.JoinDims()
	if a.Size+b.Size != d.Size {
		return fmt.Sprintf("%s=%d and %s=%d do not add up to %s=%d", a.Dim, a.Size, b.Dim, b.Size, d.Dim, d.Size)
	}
	return ""
}

// wrongPart checks that a part lies within its whole.
func wrongPart(n *Node) string {
	whole, _ := n.Args[0].Type.Extent(n.Attr.Dim)
	for _, e := range n.Outs[0].Type.Dims {
		if !n.Args[0].Type.Has(e.Dim) && (n.Attr.Offset < 0 || n.Attr.Offset+e.Size > whole.Size) {
			return fmt.Sprintf("%s=%d from element %d on does not lie within %s=%d", e.Dim, e.Size, n.Attr.Offset,
				whole.Dim, whole.Size)
		}
	}
	return ""
}

func wrongScaling(n *Node) string {
	r, err := ParseRope(n.Attr.Rope)
	if err != nil {
		return err.Error()
	}
	if want := n.turned() / 2; r.Kind == "longrope" && len(r.Factors) != want {
		return fmt.Sprintf("longrope has %d factors for %d pairs", len(r.Factors), want)
	}
	return ""
}
