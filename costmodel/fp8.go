package costmodel

import "github.com/planc-dev/planc/ir"

// Of a product of planc's own in 8 bits, each operand is read for its largest magnitude, and again to be written as it
// is rounded (cuda/kernels/fp8.cu; runtime/cpu's MatMul8 does it in place): bytes a number on a GPU, and seconds a
// number on a CPU, whose loop computes in doubles. The latter is what five runs of BenchmarkRoundEight took (11.4 to
// 11.6 ns) on the machine of cpu.go, November 2026, with other work on it.
const (
	eightBytes           = 2 + 2 + 1
	eightSaved           = 1 // of two bytes a number, which the product itself then does not read
	eightKernels         = 4
	cpuEight     Seconds = 11.5e-9
)

// eight adds what the rounding of a product's operands takes.
func (o *Op) eight(n *ir.Node, m ir.Mesh) {
	if n.Attr.In == "" {
		return
	}
	for _, a := range n.Args {
		o.FP8 += float64(a.Type.LocalElems(m))
	}
	o.Bytes -= o.FP8 * eightSaved
	o.Kernel += eightKernels
}

// eightTime is how long the passes before a product take.
func (d *Device) eightTime(o *Op) Seconds {
	if d.cores > 0 {
		return Seconds(o.FP8) * cpuEight
	}
	return Bytes(o.FP8 * eightBytes).Over(d.bandwidth)
}
