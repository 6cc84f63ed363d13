package engines

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
)

// Like identifies a group of similar measured runs. An empty field matches any run.
type Like struct {
	Engine, Generation string
	Pipelined, Nodes   string // "yes" or "no"; "one" or "several"
}

// ErrorBar is the error of predictions for similar runs: nine in ten are within Error, a fraction.
type ErrorBar struct {
	Like
	Rows   int
	Error  float64
	Short  bool   // the step is shorter than that of any row, so the rows do not apply
	Type   string // type of the matmuls, if too few rows have it; else ""
	Traits Ranges // ranges of the rows' hardware
	Beyond Beyond // the trait in which the hardware is outside all rows; its Trait is "" if there is none
}

// Errors if no similar run was measured; assumed.
const (
	gpuError = 0.30
	cpuError = 0.50
)

// withExperts marks the engine of runs of models with experts, which differ from other runs.
const withExperts = " with experts"

// LikeOf returns the groups that a run belongs to, the most similar first.
func LikeOf(engine string, c *costmodel.Cluster, pp int, experts bool) []Like {
	if experts {
		engine += withExperts
	}
	g := costmodel.GenerationOf(c.GPU.Arch)
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

// ErrorBarOf returns the error bar of a predicted step with pp pipeline stages and matmuls in type gemm: that of the
// most similar rows whose hardware is similar to the cluster's. Rows is 0 if the error is assumed. It is also assumed
// if the step is shorter than that of any row, if too few rows have the type, or if the hardware is outside the range
// of all rows. An engine without measured runs, such as planc's own on GPUs, has the error bar of the engine whose
// constants it has.
func ErrorBarOf(e *Engine, c *costmodel.Cluster, gemm string, pp int, experts bool, step costmodel.Seconds) ErrorBar {
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

// barOf returns the first error bar among likes whose rows' hardware covers traits. If a more similar bar was passed
// over because of its hardware and is wider, it returns that one: less similar rows must not make the bar narrower. The
// rows of any engine apply only to an engine without rows; that some engine ran on such hardware says little about
// another one.
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

// String describes the rows of the bar: "megatron, sm_80, pipelined, several nodes".
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
	return fmt.Sprintf("%s: nine in ten are within it", strings.Join(words, ", "))
}
