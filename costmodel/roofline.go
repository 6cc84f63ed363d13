package costmodel

import "github.com/planc-dev/planc/ir"

// Efficiencies of the roofline (Williams, Waterman, Patterson, "Roofline", 2009), as fractions of nominal rates, and
// latencies. "Assumed" marks values that are not measured on planc's own kernels yet. Those of a CPU are in cpu.go.
const gpuVector = 0.50 // fraction of the f32 peak for element-wise arithmetic; assumed, rarely the limit

// Kind groups ops by what limits their arithmetic.
type Kind uint8

// The kinds of arithmetic.
const (
	Vector        Kind = iota // element-wise ops, norms, reductions
	Matrix                    // contractions
	Attention                 // fused attention
	AttentionGrad             // the gradient of fused attention
	numKinds
)

// KindOf returns the kind of an op's arithmetic.
func KindOf(op ir.Op) Kind {
	switch op {
	case ir.OpMatMul:
		return Matrix
	case ir.OpAttention:
		return Attention
	case ir.OpAttentionGrad, ir.OpAttentionGradSides:
		return AttentionGrad
	}
	return Vector
}

// Device holds the effective rates of one device in one compute type.
type Device struct {
	Peak FlopsPerSecond // dense peak, nominal
	rate [numKinds]FlopsPerSecond
	fp8  bool // the matmuls of a GPU are in FP8
	// of planc's own matmuls that are not in FP8, if others are; 0: all matmuls have the same rate
	wide       FlopsPerSecond
	bandwidth  BytesPerSecond
	processors float64
	fine       bool    // GEMMs are divided into fine tiles
	cores      float64 // of a CPU that belong to the device; 0: a GPU
	launch     Seconds // device time per kernel
	host       Seconds // smallest host time per kernel, as the host launches kernels in sequence
	pass       Seconds // per micro-batch
	step       Seconds
}

// computeNames are the names of element types in cluster files if they differ from the program's.
var computeNames = map[ir.Elem]string{ir.F16: "fp16"}

// ComputeName returns the name of an element type in cluster files and jobs.
func ComputeName(e ir.Elem) string {
	if n := computeNames[e]; n != "" {
		return n
	}
	return e.String()
}

// Device returns the effective rates of a device in a compute type with planc's own kernels; ok is false if the device
// does not support the type. A CPU widens 16-bit numbers and computes in f32.
func (c *Cluster) Device(e ir.Elem) (d Device, ok bool) {
	return c.DeviceOf(&PlancKernels, ComputeName(e))
}

// DeviceOf is Device for a runtime's kernels, by the name of the matmuls' type, including fp8.
func (c *Cluster) DeviceOf(kernels *Kernels, compute string) (d Device, ok bool) {
	d, ok = c.predicted(kernels, compute)
	if ok {
		d.applyRates(c.Measured)
	}
	return d, ok
}

// predicted returns a device with the catalogue's efficiencies.
func (c *Cluster) predicted(kernels *Kernels, compute string) (d Device, ok bool) {
	if c.IsCPU() {
		return c.cpuDevice(compute)
	}
	nominal, scaled := compute, 1.0
	if compute == MXFP8 || compute == "fp8" && kernels.TileScaled {
		nominal, scaled = "fp8", BlockScaled
	}
	peak, ok := c.GPU.Peak(nominal)
	if !ok {
		return Device{}, false
	}
	vector, single := c.GPU.Peak("f32")
	if !single || compute == "f64" {
		vector = peak
	}
	g := GenerationOf(c.GPU.Arch)
	if g == nil {
		g = &Generations[len(Generations)-1]
	}
	matrix, half := g.matrix, peak
	if nominal == "fp8" {
		matrix = g.narrow * scaled
		half, _ = c.GPU.Peak("bf16")
	}
	cool, fused := g.Sustained*g.throttle(c.GPU.Watts), g.flash
	if kernels.Vendor {
		fused = g.vendor
	}
	d = Device{Peak: peak, fp8: nominal == "fp8", processors: g.processors, fine: g.fine,
		launch: kernels.Launch, host: kernels.Host, pass: kernels.Pass, step: kernels.Step,
		bandwidth: c.GPU.MemoryBandwidth * BytesPerSecond(g.memory*kernels.Memory)}
	d.rate = [numKinds]FlopsPerSecond{Vector: vector * gpuVector,
		Matrix:        peak * FlopsPerSecond(matrix*kernels.Matrix*cool),
		Attention:     half * FlopsPerSecond(fused[0]*kernels.Attention*cool),
		AttentionGrad: half * FlopsPerSecond(fused[1]*kernels.Attention*cool)}
	if kernels.Own && nominal == "fp8" {
		d.wide = half * FlopsPerSecond(g.matrix*kernels.Matrix*cool)
	}
	return d, true
}

// Launch returns the time of an op in addition to its work.
func (d Device) Launch() Seconds { return d.launch }

// Work returns the time of arithmetic or of memory traffic, whichever is longer.
func (d Device) Work(k Kind, flops float64, b Bytes) Seconds {
	return max(Seconds(flops/float64(d.rate[k])), b.Over(d.bandwidth))
}

// OpTime returns the time of a node on one rank of the mesh. Collectives and views take no time here.
func (d Device) OpTime(n *ir.Node, m ir.Mesh) Seconds {
	if n.Op.NoWork() || n.Op.Comm() && n.Op != ir.OpSlice {
		return 0
	}
	o := OpOf(n, m)
	return d.Time(&o)
}

// OpBytes returns a node's memory traffic. A slice copies its result.
func OpBytes(n *ir.Node, m ir.Mesh) Bytes {
	if n.Op == ir.OpSlice {
		return Bytes(2 * n.Outs[0].Type.LocalBytes(m))
	}
	return Bytes(n.Bytes(m))
}

// OptimizerTime returns the time in which a rank updates its elems elements. The gradient is read; parameters, master
// copy and moments are read and written.
func (d Device) OptimizerTime(p ir.Precision, r ir.Recipe, elems int) Seconds {
	size := p.Grads.Size() + 2*p.Params.Size() + 2*r.Moments()*p.Moments.Size()
	if p.Master != p.Params {
		size += 2 * p.Master.Size()
	}
	const flops = 12 // per element, as in the row of optimize in the op table
	return d.launch + d.Work(Vector, float64(flops*elems), Bytes(size*elems))
}

// StreamTime returns the time in which a rank reads or writes b bytes once.
func (d Device) StreamTime(b Bytes) Seconds { return d.launch + b.Over(d.bandwidth) }

// StepOverhead returns the time of a step in addition to its ops and collectives.
func (d Device) StepOverhead() Seconds { return d.step }

// PassOverhead returns the time of a micro-batch on a stage in addition to its layers.
func (d Device) PassOverhead() Seconds { return d.pass }
