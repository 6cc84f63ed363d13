package costmodel

import "github.com/planc-dev/planc/ir"

// For an FP8 matmul of planc's own, each operand is read once for its largest magnitude, and a second time to be
// written in rounded form (cuda/kernels/fp8.cu; runtime/cpu's MatMul8 does it in place). The constants are bytes per
// number on a GPU, and seconds per number on a CPU, whose loop computes in double precision. The latter is from five
// runs of BenchmarkRoundEight (11.4 to 11.6 ns) on the machine of cpu.go, in November 2026, with other work running.
const (
	fp8Bytes              = 2 + 2 + 1
	fp8BytesSaved         = 1 // of two bytes per number, which the matmul itself then does not read
	fp8Kernels            = 4
	cpuFP8        Seconds = 11.5e-9
)

// addFP8 adds the cost of rounding a matmul's operands to FP8.
func (o *Op) addFP8(n *ir.Node, m ir.Mesh) {
	if n.Attr.In == "" {
		return
	}
	for _, a := range n.Args {
		o.FP8 += float64(a.Type.LocalElems(m))
	}
	o.Bytes -= o.FP8 * fp8BytesSaved
	o.Kernel += fp8Kernels
}

// fp8Time returns the duration of the passes before an FP8 matmul.
func (d *Device) fp8Time(o *Op) Seconds {
	if d.cores > 0 {
		return Seconds(o.FP8) * cpuFP8
	}
	return Bytes(o.FP8 * fp8Bytes).Over(d.bandwidth)
}
