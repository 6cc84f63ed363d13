package ir

import "fmt"

// elemsFit checks that indices are integers and nothing else is, that statistics are not narrow, and that views keep
// the element type.
func elemsFit(_ *checker, f *Func) error {
	return f.each(func(n *Node) error {
		for i, a := range n.Args {
			if isInt := a.Type.Elem == I32; isInt != n.Op.Index(i) && !n.Op.Comm() {
				return fmt.Errorf("operand %s has type %v", a.Name, a.Type.Elem)
			}
			if m := a.Type.Monoid; m != NoMonoid && m != Sum && narrow(a) {
				return fmt.Errorf("%s, partial by %v, has type %v: statistics must be at least f32", a.Name, m,
					a.Type.Elem)
			}
		}
		for i, o := range n.Outs {
			switch {
			case n.Op.Statistic(i) && narrow(o):
				return fmt.Errorf("%s has type %v: statistics must be at least f32", o.Name, o.Type.Elem)
			case n.Op == OpCast && n.Args[0].Type.Elem == o.Type.Elem,
				n.Op.View() && n.Args[0].Type.Elem != o.Type.Elem:
				return fmt.Errorf("%s turns %[3]v into %[2]v", n.Op, o.Type.Elem, n.Args[0].Type.Elem)
			}
		}
		return nil
	})
}

// products returns how many of attention's operands are operands of its GEMMs.
func (o Op) products() int {
	if o == OpAttention {
		return 3
	}
	return 5
}

func narrow(v *Value) bool { return v.Type.Elem.Narrow() }

// elemsPlanned checks that parameters, gradients and the operands of GEMMs have the plan's types.
func elemsPlanned(c *checker, f *Func) error {
	prec := c.prog.Plan.Precision
	for _, v := range f.Inputs {
		if v.Kind == Weight && v.Type.Elem != prec.Params {
			return fmt.Errorf("parameter %s has type %v, but the plan has %v", v.Name, v.Type.Elem, prec.Params)
		}
	}
	return f.each(func(n *Node) error {
		switch n.Op {
		case OpMatMul, OpAttention, OpAttentionGrad, OpAttentionGradSides:
			for i, a := range n.Args {
				if n.Op.Attends() && i >= n.Op.products() { // the log-sum-exp and, in a ring, the result so far
					continue
				}
				if n.Attr.In != "" && !prec.FP8 {
					return fmt.Errorf("operand %s is rounded to FP8, but the plan does not compute in FP8", a.Name)
				}
				if a.Type.Elem != prec.Compute {
					return fmt.Errorf("operand %s has type %v, but the plan computes in %v", a.Name, a.Type.Elem,
						prec.Compute)
				}
			}
		}
		return nil
	})
}
