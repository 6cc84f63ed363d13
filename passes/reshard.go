package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// reshard changes v to type want with the fewest collectives. A partial over want's axes stays. Otherwise it becomes a
// reduce-scatter if want splits a dim over its axes, else an all-reduce. An axis that moves from one dim to another is
// an all-to-all, one that is removed an all-gather, and one that is added a slice.
func (pt *partitioner) reshard(v *ir.Value, want ir.Type, region ir.Region, from string) *ir.Value {
	if v.Type.Equal(want) {
		return v
	}
	key := v.Name + " " + want.String()
	if m := pt.moved[key]; m != nil {
		return m
	}
	r := &resharder{pt: pt, v: v, want: want, region: region, from: from}
	r.resolve()
	r.leave()
	r.arrive()
	if !r.v.Type.Equal(want) {
		panic("passes: reshard of " + v.Name + " made " + r.v.Type.String() + ", not " + want.String())
	}
	pt.moved[key] = r.v
	return r.v
}

// resharder reshards one value step by step; v is its current version.
type resharder struct {
	pt     *partitioner
	v      *ir.Value
	want   ir.Type
	region ir.Region
	from   string
}

// moveSuffix is the suffix of a resharded value's name.
var moveSuffix = map[ir.Op]string{
	ir.OpAllReduce: ".ar", ir.OpReduceScatter: ".rs", ir.OpAllGather: ".ag", ir.OpAllToAll: ".aa", ir.OpSlice: ".sl",
}

func (r *resharder) emit(op ir.Op, attr ir.Attr) {
	attr.Round = r.pt.round && ofRound(r.v)
	n := &ir.Node{Op: op, Args: []*ir.Value{r.v}, Attr: attr, Region: r.region, From: r.from}
	out := &ir.Value{Name: r.pt.fresh(r.v.Name + moveSuffix[op]), Type: ir.CollectiveResult(r.v.Type, op, attr), Def: n}
	n.Outs = []*ir.Value{out}
	r.pt.nodes = append(r.pt.nodes, n)
	r.v = out
}

// fresh makes a name unique in the function that is being rewritten.
func (pt *partitioner) fresh(name string) string {
	taken := func(s string) bool {
		return pt.f.Value(s) != nil || slices.ContainsFunc(pt.nodes, func(n *ir.Node) bool {
			return slices.ContainsFunc(n.Outs, func(o *ir.Value) bool { return o.Name == s })
		})
	}
	for taken(name) {
		name += "_"
	}
	return name
}

// resolve combines a partial. Axes that want has at the end of a dim's list, and the value does not, are scattered
// there.
func (r *resharder) resolve() {
	t := r.v.Type
	if t.Monoid == ir.NoMonoid {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(t.Axes), func(a ir.Axis) bool { return slices.Contains(r.want.Axes, a) })
	var scatter []ir.Attr
	for i, e := range r.want.Dims {
		have := t.Dims[i].Axes
		if len(e.Axes) <= len(have) || !slices.Equal(e.Axes[:len(have)], have) || t.Monoid != ir.Sum {
			continue
		}
		extra := e.Axes[len(have):]
		plain := ir.Plain(extra)
		if !containsAll(rest, plain) {
			continue
		}
		rest = slices.DeleteFunc(rest, func(a ir.Axis) bool { return slices.Contains(plain, a) })
		scatter = append(scatter, ir.Attr{Dim: e.Dim, Axes: extra, Monoid: t.Monoid})
	}
	for _, a := range scatter {
		r.emit(ir.OpReduceScatter, a)
	}
	if len(rest) > 0 {
		r.emit(ir.OpAllReduce, ir.Attr{Axes: rest, Monoid: t.Monoid})
	}
}

func containsAll(set, sub []ir.Axis) bool {
	return !slices.ContainsFunc(sub, func(a ir.Axis) bool { return !slices.Contains(set, a) })
}

// leave removes the axes of each dim from the first difference to want's on, the minor ones first. Axes that want has
// at the end of another dim move there directly.
func (r *resharder) leave() {
	for i := range r.want.Dims {
		have, want := r.v.Type.Dims[i].Axes, r.want.Dims[i].Axes
		keep := 0
		for keep < len(have) && keep < len(want) && have[keep] == want[keep] {
			keep++
		}
		leaving := slices.Clone(have[keep:])
		if len(leaving) == 0 {
			continue
		}
		d := r.v.Type.Dims[i].Dim
		for len(leaving) > 0 {
			n, to := r.last(leaving)
			part := slices.Clone(leaving[len(leaving)-n:])
			if to != "" {
				r.emit(ir.OpAllToAll, ir.Attr{Dim: d, To: to, Axes: part})
			} else {
				r.emit(ir.OpAllGather, ir.Attr{Dim: d, Axes: part})
			}
			leaving = leaving[:len(leaving)-n]
		}
	}
}

// last returns how many of the last axes are removed together: the most that another dim needs, or all up to those.
func (r *resharder) last(leaving []ir.Axis) (n int, to ir.Dim) {
	for end := len(leaving); end > 0; end-- {
		for k := range end {
			to, ok := r.wanted(leaving[k:end])
			switch {
			case ok && end == len(leaving):
				return end - k, to
			case ok:
				return len(leaving) - end, ""
			}
		}
	}
	return len(leaving), ""
}

// wanted returns the dim that want splits by exactly these further axes.
func (r *resharder) wanted(axes []ir.Axis) (ir.Dim, bool) {
	for i, e := range r.want.Dims {
		have := r.v.Type.Dims[i].Axes
		if len(e.Axes) >= len(have)+len(axes) && slices.Equal(e.Axes[:len(have)], have) &&
			slices.Equal(e.Axes[len(have):len(have)+len(axes)], axes) {
			return e.Dim, true
		}
	}
	return "", false
}

// arrive adds the remaining splits; every rank has the data already.
func (r *resharder) arrive() {
	for i, e := range r.want.Dims {
		have := r.v.Type.Dims[i].Axes
		if extra := e.Axes[min(len(have), len(e.Axes)):]; len(extra) > 0 {
			r.emit(ir.OpSlice, ir.Attr{Dim: e.Dim, Axes: slices.Clone(extra)})
		}
	}
}
