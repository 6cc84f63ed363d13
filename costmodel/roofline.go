package costmodel

import "github.com/planc-dev/planc/ir"

// Efficiencies of the roofline (Williams, Waterman, Patterson, "Roofline", 2009), as parts of a nominal rate, and
// latencies. "Assumed" marks what nobody has measured on planc's own kernels yet. Those of a CPU are in cpu.go.
const gpuVector = 0.50 // of the f32 peak, for element-wise arithmetic; assumed, rarely the limit

// Kind groups ops by what limits their arithmetic.
type Kind uint8

// The kinds of arithmetic.
const (
	Vector        Kind = iota // element by element, norms, reductions
	Matrix                    // contractions
	Attention                 // fused attention
	AttentionGrad             // its gradient
	numKinds
)

// KindOf is the kind of an op's arithmetic.
func KindOf(op ir.Op) Kind {
	switch op {
	case ir.OpMatMul:
		return Matrix
	case ir.OpAttention:
		return Attention
	case ir.OpAttentionGrad:
		return AttentionGrad
	}
	return Vector
}

// Device is what one device reaches in one compute type.
type Device struct {
	Peak       FlopsPerSecond // dense peak, nominal
	Engine     *Engine
	rate       [numKinds]FlopsPerSecond
	eight      bool           // a GPU's products are in 8 bits
	wide       FlopsPerSecond // of planc's own products that are not in 8 bits, where others are; 0: all are alike
	bandwidth  BytesPerSecond
	processors float64
	cores      float64 // of a CPU that are the device's; 0: a GPU
	launch     Seconds // a kernel, on the device
	host       Seconds // a kernel at least, as the host issues them one after the other
	pass       Seconds // a micro-batch
	step       Seconds
}

// computeNames are the names of element types in a cluster file where they differ from the program's.
var computeNames = map[ir.Elem]string{ir.F16: "fp16"}

// ComputeName is an element type as cluster files and jobs call it.
func ComputeName(e ir.Elem) string {
	if n := computeNames[e]; n != "" {
		return n
	}
	return e.String()
}

// Device is what a device of the cluster reaches in a compute type under planc's own engine; ok is false if it cannot
// compute in it. A CPU widens numbers of 16 bits and computes in f32.
func (c *Cluster) Device(e ir.Elem) (d Device, ok bool) {
	return c.DeviceOf(PlancEngine, ComputeName(e))
}

// DeviceOf is Device under an engine, by the name of what matmuls compute in, fp8 included.
func (c *Cluster) DeviceOf(engine *Engine, compute string) (d Device, ok bool) {
	d, ok = c.predicted(engine, compute)
	if ok {
		d.applyRates(c.Measured)
	}
	return d, ok
}

// predicted is a device as the catalogue's efficiencies have it.
func (c *Cluster) predicted(engine *Engine, compute string) (d Device, ok bool) {
	if c.IsCPU() {
		return c.cpuDevice(compute)
	}
	nominal, scaled := compute, 1.0
	if compute == MXFP8 || compute == "fp8" && engine.TileScaled {
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
	g := generationOf(c.GPU.Arch)
	if g == nil {
		g = &Generations[len(Generations)-1]
	}
	matrix, half := g.matrix, peak
	if nominal == "fp8" {
		matrix = g.narrow * scaled
		half, _ = c.GPU.Peak("bf16")
	}
	cool, fused := g.Sustained*g.throttle(c.GPU.Watts), g.flash
	if engine.Vendor {
		fused = g.vendor
	}
	d = Device{Peak: peak, Engine: engine, eight: nominal == "fp8", processors: g.processors, launch: engine.Launch,
		host: engine.Host, pass: engine.Pass, step: engine.Step,
		bandwidth: c.GPU.MemoryBandwidth * BytesPerSecond(g.memory*engine.Memory)}
	d.rate = [numKinds]FlopsPerSecond{Vector: vector * gpuVector,
		Matrix:        peak * FlopsPerSecond(matrix*engine.Matrix*cool),
		Attention:     half * FlopsPerSecond(fused[0]*engine.Attention*cool),
		AttentionGrad: half * FlopsPerSecond(fused[1]*engine.Attention*cool)}
	if engine.Own && nominal == "fp8" {
		d.wide = half * FlopsPerSecond(g.matrix*engine.Matrix*cool)
	}
	return d, true
}

// Launch is the time that any op costs beside its work.
func (d Device) Launch() Seconds { return d.launch }

// Work is the time of arithmetic and of memory traffic, whichever is longer.
func (d Device) Work(k Kind, flops float64, b Bytes) Seconds {
	return max(Seconds(flops/float64(d.rate[k])), b.Over(d.bandwidth))
}

// OpTime is the time of a node on one rank of the mesh. A collective and a view cost nothing here.
func (d Device) OpTime(n *ir.Node, m ir.Mesh) Seconds {
	if n.Op.View() || n.Op.Comm() && n.Op != ir.OpSlice {
		return 0
	}
	o := OpOf(n, m)
	return d.Time(&o)
}

// OpBytes is the node's memory traffic. A slice copies its result.
func OpBytes(n *ir.Node, m ir.Mesh) Bytes {
	if n.Op == ir.OpSlice {
		return Bytes(2 * n.Outs[0].Type.LocalBytes(m))
	}
	return Bytes(n.Bytes(m))
}

// OptimizerTime is the time in which a rank updates its elems elements: the gradient is read, parameters,
// master copy and moments are read and written.
func (d Device) OptimizerTime(p ir.Precision, r ir.Recipe, elems int) Seconds {
	size := p.Grads.Size() + 2*p.Params.Size() + 2*r.Moments()*p.Moments.Size()
	if p.Master != p.Params {
		size += 2 * p.Master.Size()
	}
	const flops = 12 // an element, as the op table says of optimize
	return d.launch + d.Work(Vector, float64(flops*elems), Bytes(size*elems))
}

// StreamTime is the time in which a rank reads or writes b bytes once.
func (d Device) StreamTime(b Bytes) Seconds { return d.launch + b.Over(d.bandwidth) }

// StepOverhead is what a step costs beside its ops and collectives.
func (d Device) StepOverhead() Seconds { return d.step }

// PassOverhead is what a micro-batch costs a stage beside its layers.
func (d Device) PassOverhead() Seconds { return d.pass }
