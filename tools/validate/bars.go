package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"math"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/passes/validate"
)

// The error bar of a prediction is the error that nine in ten similar rows do not exceed.
const (
	quantile = 0.9
	fewest   = 5  // minimum of rows for a bar; fewer are merged with less similar rows
	ofSource = 60 // maximum of rows of one source, at equal distances: similar rows add little
)

// barsOf returns the error bars of rows that are not held out, from the most to the least specific: by engine, GPU
// generation, pipeline and number of nodes; by engine and generation; by engine; of all rows.
func (s *study) barsOf() []engines.ErrorBar {
	byLike, traits := map[engines.Like][]float64{}, map[engines.Like]*engines.Ranges{}
	type rows struct {
		source  string
		experts bool
	}
	of := func(p *validate.Priced) rows { return rows{p.Source, p.Asked.Plan.MoESlack > 0} }
	seen, total := map[rows]int{}, map[rows]int{}
	for _, p := range s.fitted {
		total[of(p)]++
	}
	for _, p := range s.fitted {
		n := seen[of(p)]
		seen[of(p)]++
		if step := (total[of(p)] + ofSource - 1) / ofSource; n%step != 0 {
			continue
		}
		for _, like := range engines.LikeOf(p.Engine, p.Cluster, p.Asked.Plan.PP, p.Asked.Plan.MoESlack > 0) {
			byLike[like] = append(byLike[like], math.Abs(*p.Error))
			if traits[like] == nil {
				traits[like] = &engines.Ranges{}
			}
			traits[like].Add(engines.TraitsOf(p.Cluster))
		}
	}
	var out []engines.ErrorBar
	for like, errs := range byLike {
		if len(errs) >= fewest {
			out = append(out, engines.ErrorBar{Like: like, Rows: len(errs),
				Error:  math.Round(1000*validate.Quantile(errs, quantile)) / 1000,
				Traits: *traits[like]})
		}
	}
	slices.SortFunc(out, func(a, b engines.ErrorBar) int {
		return cmp.Or(cmp.Compare(a.Engine, b.Engine), cmp.Compare(a.Generation, b.Generation),
			cmp.Compare(a.Pipelined, b.Pipelined), cmp.Compare(a.Nodes, b.Nodes))
	})
	return out
}

// memoryDeviation returns the deviation of memory errors of rows that are not held out. It is computed from the
// median of their size, so that a few outliers do not change it.
func (s *study) memoryDeviation() float64 {
	var errs []float64
	for i := range s.report.Rows {
		if p := &s.report.Rows[i]; p.MemoryError != nil && !slices.Contains(heldOut, p.File) && !p.Barred {
			errs = append(errs, math.Abs(*p.MemoryError))
		}
	}
	return math.Round(1000*1.4826*validate.Quantile(errs, 0.5)) / 1000
}

// shortestStep returns the shortest step, in seconds, of rows that are not held out.
func (s *study) shortestStep() float64 {
	out := math.Inf(1)
	for _, p := range s.fitted {
		out = min(out, *p.Measured)
	}
	return math.Round(1e4*out) / 1e4
}

// types returns the compute types of the matmuls of enough rows that are not held out.
func (s *study) types() (out []string) {
	rows := map[string]int{}
	for _, p := range s.fitted {
		rows[p.Asked.Problem.GEMM]++
		if rows[p.Asked.Problem.GEMM] == fewest {
			out = append(out, p.Asked.Problem.GEMM)
		}
	}
	slices.Sort(out)
	return out
}

// errorBars returns the source of the table in package engines.
func (s *study) errorBars() []byte {
	var b bytes.Buffer
	b.WriteString("package engines\n\n// go run ./validate in the folder tools generates this file, and a test " +
		"there checks that it is current.\n\n")
	b.WriteString("// errorBars are computed from the rows in tools/validate/rows, without the tables that are " +
		"held out " +
		"of every fit.\n")
	b.WriteString("var errorBars = []ErrorBar{\n")
	for _, e := range s.barsOf() {
		fmt.Fprintf(&b, "{Like: Like{%q, %q, %q, %q}, Rows: %d, Error: %v,\nTraits: Ranges{%s}},\n", e.Engine,
			e.Generation, e.Pipelined, e.Nodes,
			e.Rows, e.Error, rangesText(e.Traits))
	}
	fmt.Fprintf(&b, "}\n\n// shortestStep is the shortest measured step of these rows, in seconds.\nconst "+
		"shortestStep = %v\n", s.shortestStep())
	fmt.Fprintf(&b, "\n// measuredTypes are the compute types of their matmuls with %d rows or more each.\n"+
		"var measuredTypes = %#v\n", fewest, s.types())
	fmt.Fprintf(&b, "\n// memoryDeviation is the deviation of the memory of runtimes other than planc's, as "+
		"a fraction "+
		"of the prediction.\nconst memoryDeviation = %v\n", s.memoryDeviation())
	out, err := format.Source(b.Bytes())
	if err != nil {
		panic(err)
	}
	return out
}

// rangesText returns ranges as Go source.
func rangesText(r engines.Ranges) string {
	var words []string
	for _, own := range r {
		words = append(words, fmt.Sprintf("{%.6g, %.6g}", own[0], own[1]))
	}
	return strings.Join(words, ", ")
}

func (s *study) barTable() string {
	var b bytes.Buffer
	head(&b, "engine", "GPUs", "pipeline", "nodes", "rows", "nine in ten are within")
	for _, e := range s.barsOf() {
		line(&b, cmp.Or(e.Engine, "any"), cmp.Or(e.Generation, "any"), cmp.Or(e.Pipelined, "either"),
			cmp.Or(e.Nodes, "any"), fmt.Sprint(e.Rows), percent(e.Error))
	}
	return b.String()
}
