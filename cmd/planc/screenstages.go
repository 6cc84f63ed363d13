package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// stageLine shows what each stage has to do in a step, the slowest as ten cells: "0 ██████████ 1 █████████▌". Of many
// stages only the first two and the last are shown. "" where there is one stage.
func (d *document) stageLine() string {
	work := d.head.stages
	if len(work) < 2 {
		return ""
	}
	slowest := 0
	for i := range work {
		if work[i] > work[slowest]*(1+1e-9) {
			slowest = i
		}
	}
	const shown = 3
	var words []string
	for i, w := range work {
		switch {
		case len(work) <= shown || i < shown-1 || i == len(work)-1:
			words = append(words, fmt.Sprintf("%d %s", i, cells(float64(w/work[slowest]))))
		case i == shown-1:
			words = append(words, "...")
		}
	}
	what := fmt.Sprint(slowest)
	if last := len(work) - 1; slowest == last {
		what += " (head)"
	}
	return flow("STAGES", labelColumn, "  ", append(words, fmt.Sprintf("slowest: %s, %s", what,
		seconds(float64(work[slowest])))))
}

// cells is a part of ten cells, to half a cell.
func cells(part float64) string {
	halves := int(math.Round(20 * part))
	return strings.Repeat("█", halves/2) + strings.Repeat("▌", halves%2)
}

// stages is what each stage of the chosen plan has to do, for the screen.
func (j *loaded) stages(d *document) ([]costmodel.Seconds, error) {
	if d.Plan.Plan.PP < 2 {
		return nil, nil
	}
	return search.Stages(j.Problem(), d.Plan.Plan)
}

// unevenWords are the layers of each stage, or of each chunk in model order if stages have several, unless all have the
// same number; "" if they have. Equal neighbours are written once: "layers 7/8×14/7" is 8 layers in each of 14 stages,
// and 7 in the first and the last.
func unevenWords(p ir.Plan) string {
	counts := strings.Split(p.StageLayers, ",")
	var runs []string
	for i := 0; i < len(counts); {
		n := 1
		for i+n < len(counts) && counts[i+n] == counts[i] {
			n++
		}
		if run := counts[i]; n > 1 {
			runs = append(runs, fmt.Sprintf("%s×%d", run, n))
		} else {
			runs = append(runs, run)
		}
		i += n
	}
	switch {
	case len(runs) < 2:
		return ""
	case p.VPP > 1:
		return "layers of chunks " + strings.Join(runs, "/")
	}
	return "layers " + strings.Join(runs, "/")
}
