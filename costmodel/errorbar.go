package costmodel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Like says which measured runs are like a prediction. An empty field stands for any.
type Like struct {
	Engine, Generation string
	Pipelined, Nodes   string // "yes" or "no"; "one" or "several"
}

// ErrorBar is what predictions of like runs were off by: nine in ten by no more than Error, a fraction.
type ErrorBar struct {
	Like
	Rows   int
	Error  float64
	Short  bool   // the step is shorter than that of any row, which so say nothing of it
	Type   string // what matmuls compute in, if too few rows do; else ""
	Traits Ranges // of the rows' hardware
	Beyond Beyond // where the hardware is unlike that of any row; else its Trait is ""
}

// Errors where no like run was measured, assumed.
const (
	gpuError = 0.30
	cpuError = 0.50
)

// withExperts marks the engine of runs of models with experts, which are unlike others.
const withExperts = " with experts"

// LikeOf are the likes of a run, the most alike first.
func LikeOf(engine string, c *Cluster, pp int, experts bool) []Like {
	if experts {
		engine += withExperts
	}
	g := generationOf(c.GPU.Arch)
	if g == nil {
		return nil
	}
	l := Like{engine, g.Arch, "no", "one"}
	if pp > 1 {
		l.Pipelined = "yes"
	}
	if c.Nodes > 1 {
		l.Nodes = "several"
	}
	return []Like{l, {engine, g.Arch, "", ""}, {engine, "", "", ""}, {}}
}

// ErrorBarOf is the error bar of a predicted step with so many pipeline stages, whose matmuls compute in gemm: that of the
// most alike rows whose hardware is like the cluster's. Rows of 0 is an assumption, as it is of a step that is shorter
// than that of any row, computes in what too few did, or runs on hardware unlike that of any like row. An engine of
// which no run was measured, as planc's own on GPUs, has the bar of the one whose constants it has.
func ErrorBarOf(e *Engine, c *Cluster, gemm string, pp int, experts bool, step Seconds) ErrorBar {
	switch {
	case c.IsCPU():
		return ErrorBar{Error: cpuError}
	case !slices.Contains(measuredTypes, gemm):
		return ErrorBar{Error: gpuError, Type: gemm}
	case step < shortestStep:
		return ErrorBar{Error: gpuError, Short: true}
	}
	return barOf(LikeOf(cmp.Or(e.Like, e.Name), c, pp, experts), TraitsOf(c))
}

// barOf is the first bar of these likes whose rows' hardware is like this, or one passed over before that is wider:
// hardware that is less alike has no narrower bar for it. Rows of any engine stand for one that has none, and for no
// other: that some of theirs are on such hardware says little of the engine.
func barOf(likes []Like, traits Traits) ErrorBar {
	out, passed := ErrorBar{Error: gpuError}, ErrorBar{}
	for _, like := range likes {
		i := slices.IndexFunc(errorBars, func(b ErrorBar) bool { return b.Like == like })
		if i < 0 || like.Engine == "" && out.Beyond.Trait != "" {
			continue
		}
		b := errorBars[i]
		if b.Error < passed.Error {
			b = passed
		}
		out.Beyond = errorBars[i].Traits.beyond(traits)
		if out.Beyond.Trait == "" {
			return b
		}
		out.Beyond.Engine, out.Error, passed = like.Engine, max(gpuError, b.Error), b
	}
	return out
}

// String says which rows the bar is from: "megatron, sm_80, pipelined, several nodes".
func (b ErrorBar) String() string {
	if b.Type != "" {
		return fmt.Sprintf("assumed; no measured run computes in %s", b.Type)
	}
	if b.Short {
		return fmt.Sprintf("assumed; the shortest step of a measured run is %.0f ms", 1e3*shortestStep)
	}
	if b.Beyond.Trait != "" {
		return "assumed; " + b.Beyond.String()
	}
	if b.Rows == 0 {
		return "assumed; no measured run is like this one yet"
	}
	words := []string{"any engine"}
	if b.Engine != "" {
		words[0] = b.Engine
	}
	for _, w := range []string{b.Generation, map[string]string{"yes": "pipelined", "no": "no pipeline"}[b.Pipelined],
		map[string]string{"one": "one node", "several": "several nodes"}[b.Nodes]} {
		if w != "" {
			words = append(words, w)
		}
	}
	return fmt.Sprintf("%s: nine in ten of these published runs are within it", strings.Join(words, ", "))
}
