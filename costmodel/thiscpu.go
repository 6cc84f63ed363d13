package costmodel

import (
	"maps"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// ThisCPU holds the rates that planc calibrate measured on the CPU that planc runs on. The catalogue's cpu means this
// machine's CPU. With a measurement it has these rates instead of those of the development machine.
type ThisCPU struct {
	By                   string  // what measured it, and when
	Cores                int     // that programs may use
	Single, Double, Half float64 // TFLOP/s of a core in f32, f64 and bf16; Half is 0 if it was not measured
	Memory, Link         BytesPerSecond
	LatencyUS            float64 // per hop between ranks
	Matrix, Overhead     float64 // factors of Measured
}

// thisCPU is the catalogue's name of the CPU that planc runs on.
const thisCPU = "cpu"

// ResolveOn is [Resolve] on a machine whose CPU was measured: the catalogue's cpu has the measured rates. The figures
// that decide a plan remain those of the catalogue, so that a lock is valid on every machine. Other clusters, and all
// clusters if here is nil, are resolved as by Resolve.
func ResolveOn(here *ThisCPU, r Ref, at func(field string) ir.Pos, read func(string) ([]byte, error)) (*Cluster,
	error) {
	if at == nil {
		at = func(string) ir.Pos { return ir.Pos{} }
	}
	named, err := Resolve(r, at, read)
	if err != nil || here == nil || !IsThisCPU(r.Node) {
		return named, err
	}
	x := resolution{ref: r, at: at}
	err = x.lookup(read)
	if err != nil {
		return nil, err
	}
	here.apply(x.found)
	x.found.named = named
	return x.finish()
}

// IsThisCPU reports whether a job's cluster of this name is the CPU that planc runs on.
func IsThisCPU(node string) bool { return canonical(strings.ToLower(node)) == thisCPU && !IsFile(node) }

// apply replaces the catalogue's rates by the measured ones. Memory and devices stay.
func (t *ThisCPU) apply(c *Cluster) {
	c.GPU.PeakTFLOPS = maps.Clone(c.GPU.PeakTFLOPS)
	c.GPU.PeakTFLOPS["f32"], c.GPU.PeakTFLOPS["f64"] = t.Single, t.Double
	if t.Half > 0 {
		c.GPU.PeakTFLOPS["bf16"] = t.Half
	}
	c.GPU.MemoryBandwidth, c.Node.Host.Bandwidth = t.Memory, t.Memory
	c.Node.Link.Bandwidth, c.Node.Link.LatencyUS = t.Link, t.LatencyUS
	c.Node.Host.Cores = t.Cores
	c.Measured = Measured{By: t.By, Matrix: t.Matrix, Overhead: t.Overhead}
}
