package costmodel

import "github.com/planc-dev/planc/ir"

// Op is the work of one kernel on one rank, or of several equal kernels.
type Op struct {
	Kind  Kind
	Flops float64
	Bytes float64 // memory traffic
	// bytes of the traffic that a GPU does not have, because it reads the operands for another op with the same kernel
	Shared float64
	Shape  GEMM // of a Matrix op
	// numbers of both operands that passes before an FP8 matmul of planc's own round to FP8; 0: it is not in FP8
	FP8    float64
	Kernel float64 // number of launches; more than 1 for several kernels in a row
	Held   bool    // part of a CUDA graph, so that launches take no host time
	Looped float64 // fraction of the host's time per kernel for kernels that a library launches in a loop; 0: all of it
}

// Grown returns the op increased by more times a slope: flops, bytes and shape are linear in the micro-batch.
func (o *Op) Grown(slope *Op, more float64) Op {
	g := *o
	g.Flops += float64(more * slope.Flops)
	g.Bytes += float64(more * slope.Bytes)
	g.Shared += float64(more * slope.Shared)
	g.FP8 += float64(more * slope.FP8)
	g.Shape.M += float64(more * slope.Shape.M)
	g.Shape.N += float64(more * slope.Shape.N)
	g.Shape.K += float64(more * slope.Shape.K)
	g.Shape.Batch += float64(more * slope.Shape.Batch)
	return g
}

// Issued returns the number of kernels for which the host needs time.
func (o *Op) Issued() float64 {
	if o.Held {
		return 0
	}
	if o.Looped > 0 && o.Kernel > 1 {
		return 1 + o.Looped*(o.Kernel-1)
	}
	return o.Kernel
}

// Slope returns the difference between two and o.
func (o *Op) Slope(two *Op) Op { return two.Grown(o, -1) }

// Time returns the duration of the op including its launches.
func (d *Device) Time(o *Op) Seconds {
	return d.Within(o) + Seconds(float64(max(1, o.Kernel)*float64(d.launch)))
}

// Within returns the duration of the op as a part of another kernel, without launches.
func (d *Device) Within(o *Op) Seconds {
	work := Bytes(o.Bytes - o.Shared).Over(d.bandwidth)
	switch {
	case d.cores > 0:
		work = max(Bytes(o.Bytes).Over(d.bandwidth), d.cpuTime(o))
	case o.Kind == Matrix && o.Shape.M > 0:
		work = max(work, d.matrixTime(o))
	case o.Kind >= Attention && o.Shape.K > 0 && d.processors > 0:
		work = max(work, Seconds(o.Flops*narrowHeads(o.Shape.K)/float64(d.rate[o.Kind])))
	default:
		work = max(work, Seconds(o.Flops/float64(d.rate[o.Kind])))
	}
	return work + d.fp8Time(o)
}

// narrowHeads returns the slowdown of fused attention with narrow heads, for which softmax weighs more relative to the
// GEMMs (Dao 2023, figures for heads of 64 against 128).
func narrowHeads(d float64) float64 {
	if d >= 128 {
		return 1
	}
	return 1 + 0.25*(128-d)/64
}

// HostTime returns the time that the host needs to launch kernels, or a collective.
func (d *Device) HostTime(kernels float64) Seconds {
	return Seconds(float64(float64(d.host) * kernels))
}

// OpOf returns a node's work on one rank of the mesh.
func OpOf(n *ir.Node, m ir.Mesh) Op {
	o := Op{Kind: KindOf(n.Op), Flops: n.Flops(m), Bytes: float64(OpBytes(n, m)), Shape: shapeOf(n, m), Kernel: 1}
	for _, b := range n.Body { // a fused group has the kind of its most demanding op
		if k := KindOf(b.Op); k > o.Kind {
			o.Kind, o.Shape = k, shapeOf(b, m)
		}
	}
	o.addFP8(n, m)
	return o
}

// OpsOf returns a function that is OpOf for the nodes of f, some of which a GPU computes with the kernels of others.
func OpsOf(f *ir.Func, m ir.Mesh) func(*ir.Node) Op {
	shared := map[*ir.Node]float64{}
	for _, g := range f.NormGradients(m) {
		for _, sum := range g.Sums() {
			for _, v := range sum.Args {
				shared[sum] += float64(v.Type.LocalBytes(m))
			}
		}
	}
	return func(n *ir.Node) Op {
		o := OpOf(n, m)
		o.Shared = shared[n]
		return o
	}
}

// shapeOf returns the GEMM of a contraction: m from the dims that the result shares with only the first operand, n from
// those it shares with only the second, k from those that are reduced. Dims of all three are the batch. For attention
// it returns queries, keys and the width of a head.
func shapeOf(n *ir.Node, m ir.Mesh) GEMM {
	if KindOf(n.Op) >= Attention {
		width, _ := n.Args[0].Type.Extent(ir.HeadDim)
		local := n.Locals(m)
		return GEMM{M: local.Get(ir.Seq), N: local.Get(ir.KSeq), K: float64(width.Size)}
	}
	if n.Op != ir.OpMatMul || len(n.Args) < 2 {
		return GEMM{}
	}
	has := func(v *ir.Value, d ir.Dim) bool { _, ok := v.Type.Extent(d); return ok }
	g := GEMM{M: 1, N: 1, K: 1, Batch: 1}
	local := n.Locals(m)
	for i, v := range n.Args[:2] {
		for _, e := range v.Type.Dims {
			d, size := e.Dim, local.Get(e.Dim)
			if i > 0 && has(n.Args[0], d) {
				continue // counted already
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
