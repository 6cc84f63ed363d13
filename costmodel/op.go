package costmodel

import (
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/fusion"
)

// Op is the work of one kernel on one rank, or of several equal kernels.
type Op struct {
	Kind  Kind
	Flops float64
	Bytes float64 // memory traffic
	Fused FusedOps
	Shape GEMM // of a Matrix op
	// numbers of both operands that passes before an FP8 matmul of planc's own round to FP8; 0: it is not in FP8
	FP8    float64
	Kernel float64 // number of launches; more than 1 for several kernels in a row
	Held   bool    // part of a CUDA graph, so that launches take no host time
	Looped float64 // fraction of the host's time per kernel for kernels that a library launches in a loop; 0: all of it
}

// FusedOps is the work of other ops that a GEMM's call computes: additions, its epilogue, sums of its operand's rows.
type FusedOps struct {
	Flops float64
	Bytes float64 // traffic in addition to the GEMM's own
}

// Grown returns the op increased by more times a slope: flops, bytes and shape are linear in the micro-batch.
func (o *Op) Grown(slope *Op, more float64) Op {
	g := *o
	g.Flops += float64(more * slope.Flops)
	g.Bytes += float64(more * slope.Bytes)
	g.Fused.Flops += float64(more * slope.Fused.Flops)
	g.Fused.Bytes += float64(more * slope.Fused.Bytes)
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
	work := Bytes(o.Bytes + o.Fused.Bytes).Over(d.bandwidth)
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

// OpOfCall returns a node's work on one rank of the mesh with that of the other ops that its call computes.
func OpOfCall(n *ir.Node, call *fusion.Call, m ir.Mesh) Op {
	o := OpOf(n, m)
	flops := accumulateFlops(n, m)
	for _, f := range call.Ops() {
		flops += f.Flops(m) + accumulateFlops(f, m)
	}
	if o.Kind == Vector {
		o.Flops += flops
	} else {
		o.Fused.Flops = flops
	}
	o.addTraffic(n, call, m)
	return o
}

// accumulateFlops returns the flops with which a node adds its result to a gradient.
func accumulateFlops(n *ir.Node, m ir.Mesh) float64 {
	if len(n.Outs) == 0 || !ir.Accumulates(n) {
		return 0
	}
	return float64(n.Outs[0].Type.LocalElems(m))
}

// addTraffic adds what a call reads and writes for the other ops that it computes. A GEMM that adds to a gradient reads
// the gradient, except in the first micro-batch.
func (o *Op) addTraffic(n *ir.Node, call *fusion.Call, m ir.Mesh) {
	bytes := 0
	add := func(vs ...*ir.Value) {
		for _, v := range vs {
			if v != nil {
				bytes += v.Type.LocalBytes(m)
			}
		}
	}
	if n.Op == ir.OpMatMul && ir.Accumulates(n) {
		add(n.Outs...)
	}
	add(call.C, call.Bias)
	if call.Epilogue != nil {
		add(ir.OtherOperand(ir.SingleOp(call.Epilogue), n.Outs[0]))
		add(call.Epilogue.Outs...)
		if !call.KeepsResult {
			bytes -= n.Outs[0].Type.LocalBytes(m)
		}
	}
	if call.RowSum != nil { // another kernel adds the sums to the gradient
		add(call.RowSum.Outs...)
		o.Kernel++
	}
	if g := call.NormGradient; g != nil { // one kernel more per gradient adds the sums of parts of the rows
		for _, sum := range g.Sums() {
			add(sum.Outs...)
			o.Kernel++
		}
	}
	o.Fused.Bytes = float64(bytes)
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
