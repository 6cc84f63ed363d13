package costmodel

import "github.com/planc-dev/planc/ir"

// Op is the work of one kernel on one rank, or of several alike.
type Op struct {
	Kind  Kind
	Flops float64
	Bytes float64 // of memory traffic
	Shape GEMM    // of a Matrix op
	// numbers that passes before a product of planc's own round to 8 bits, both operands'; 0: it is of 16 bits or more
	FP8    float64
	Kernel float64 // launches; 1 unless it is several in a row
	Held   bool    // in a graph, so that launches take no time of the host
	Looped float64 // of the host's time for a kernel, what one of several in a loop of the library's own takes; 0: all
}

// Grown is the op at more times a step along its slope: flops, bytes and shape are lines over the micro-batch.
func (o *Op) Grown(slope *Op, more float64) Op {
	g := *o
	g.Flops += float64(more * slope.Flops)
	g.Bytes += float64(more * slope.Bytes)
	g.FP8 += float64(more * slope.FP8)
	g.Shape.M += float64(more * slope.Shape.M)
	g.Shape.N += float64(more * slope.Shape.N)
	g.Shape.K += float64(more * slope.Shape.K)
	g.Shape.Batch += float64(more * slope.Shape.Batch)
	return g
}

// Issued is how many kernels' worth of time the host takes for the op.
func (o *Op) Issued() float64 {
	if o.Held {
		return 0
	}
	if o.Looped > 0 && o.Kernel > 1 {
		return 1 + o.Looped*(o.Kernel-1)
	}
	return o.Kernel
}

// Slope is how much larger two is than o.
func (o *Op) Slope(two *Op) Op { return two.Grown(o, -1) }

// Time is how long the op takes, its launches included.
func (d *Device) Time(o *Op) Seconds {
	return d.Within(o) + Seconds(float64(max(1, o.Kernel)*float64(d.launch)))
}

// Within is how long the op takes as a part of another kernel, without launches of its own.
func (d *Device) Within(o *Op) Seconds {
	work := Bytes(o.Bytes).Over(d.bandwidth)
	switch {
	case d.cores > 0:
		work = max(work, d.cpuTime(o))
	case o.Kind == Matrix && o.Shape.M > 0:
		work = max(work, d.matrixTime(o))
	case o.Kind >= Attention && o.Shape.K > 0 && d.processors > 0:
		work = max(work, Seconds(o.Flops*narrowHeads(o.Shape.K)/float64(d.rate[o.Kind])))
	default:
		work = max(work, Seconds(o.Flops/float64(d.rate[o.Kind])))
	}
	return work + d.eightTime(o)
}

// narrowHeads is how much slower fused attention is with narrow heads, whose softmax weighs more beside their products
// (Dao 2023, figures for heads of 64 against 128).
func narrowHeads(d float64) float64 {
	if d >= 128 {
		return 1
	}
	return 1 + 0.25*(128-d)/64
}

// HostTime is how long the host takes to issue the op's kernels, or a collective.
func (d *Device) HostTime(kernels float64) Seconds {
	return Seconds(float64(float64(d.host) * kernels))
}

// OpOf is a node's work on one rank of the mesh.
func OpOf(n *ir.Node, m ir.Mesh) Op {
	o := Op{Kind: KindOf(n.Op), Flops: n.Flops(m), Bytes: float64(OpBytes(n, m)), Shape: shapeOf(n, m), Kernel: 1}
	for _, b := range n.Body { // of a fused group what is hardest
		if k := KindOf(b.Op); k > o.Kind {
			o.Kind, o.Shape = k, shapeOf(b, m)
		}
	}
	o.eight(n, m)
	return o
}

// shapeOf is the GEMM of a contraction: m from the dims that the result has from the first operand alone, n from the
// second alone, k from those that are summed; dims of all three are a batch of products. Of attention: queries, keys,
// and the width of a head.
func shapeOf(n *ir.Node, m ir.Mesh) GEMM {
	if KindOf(n.Op) >= Attention {
		width, _ := n.Args[0].Type.Extent(ir.HeadDim)
		local := n.Locals(m)
		return GEMM{M: local.Of(ir.Seq), N: local.Of(ir.KSeq), K: float64(width.Size)}
	}
	if n.Op != ir.OpMatMul || len(n.Args) < 2 {
		return GEMM{}
	}
	has := func(v *ir.Value, d ir.Dim) bool { _, ok := v.Type.Extent(d); return ok }
	g := GEMM{M: 1, N: 1, K: 1, Batch: 1}
	local := n.Locals(m)
	for i, v := range n.Args[:2] {
		for _, e := range v.Type.Dims {
			d, size := e.Dim, local.Of(e.Dim)
			if i > 0 && has(n.Args[0], d) {
				continue // seen
			}
			switch a, b, out := has(n.Args[0], d), has(n.Args[1], d), has(n.Outs[0], d); {
			case !out:
				g.K *= size
			case a && b:
				g.Batch *= size
			case a:
				g.M *= size
			default:
				g.N *= size
			}
		}
	}
	return g
}
