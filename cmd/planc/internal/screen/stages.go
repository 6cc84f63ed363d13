package screen

import (
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/planner/quantity"
)

// stageLine shows the busy time of each stage in a step as a bar, with ten cells for the slowest stage:
// "0 ██████████ 1 █████████▌". It shows at most the first two stages and the last; "" if there is only one stage.
func (d *Document) stageLine() string {
	work := d.Head.Stages
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
	return layout.Flow("STAGES", labelColumn, "  ", append(words, fmt.Sprintf("slowest: %s, %s", what,
		quantity.Seconds(float64(work[slowest])))))
}

// cells returns a bar for a fraction of ten cells, rounded to half a cell.
func cells(part float64) string {
	halves := int(math.Round(20 * part))
	return strings.Repeat("█", halves/2) + strings.Repeat("▌", halves%2)
}

// unevenWords returns the number of layers of each stage, or of each chunk in model order if stages have several
// chunks; "" if all have the same number. Equal neighbors are grouped: "layers 7/8×14/7" means 8 layers in each of 14
// stages, and 7 in the first and the last.
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
