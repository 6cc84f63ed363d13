package checkscreen

import (
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
)

// planWords returns a plan in which each key stays with its value if the line is folded.
func planWords(plan string) string {
	terms := strings.Split(plan, " · ")
	for i := range terms {
		terms[i] = strings.ReplaceAll(terms[i], " ", noBreak)
	}
	return strings.Join(terms, " · ")
}

// noBreak stands for a space at which no line is folded. It is a character of no text.
const noBreak = "\ue000"

// Engines formats a comparison of engines: one line each.
func Engines(c *planner.EngineComparison) string {
	var rows [][]string
	for _, e := range c.Engines {
		if e.Plan == nil {
			rows = append(rows, []string{e.Engine, "–", "", "", e.Message})
			continue
		}
		p := e.Predict
		step := quantity.Seconds(float64(p.StepS))
		if p.StepSHigh > p.StepSLow {
			step += fmt.Sprintf(" ± %.0f %%", math.Round(100*float64((p.StepSHigh-p.StepSLow)/2/p.StepS)))
		}
		rows = append(rows, []string{e.Engine, step, quantity.Signed(*e.SlowerBy), quantity.Bytes(p.MemoryBytes.Total),
			planWords(e.Plan.Plan.String())})
	}
	train := c.Question.Train
	columns := []layout.Column{layout.Left("ENGINE"), layout.Right("STEP"), layout.Right("SLOWER"),
		layout.Right("MEMORY"), layout.Left("BEST PLAN")}
	return layout.Flow("", 0, " · ", []string{fmt.Sprintf("%s  %s params", c.Model.Name, amount.Params(c.Model.Params)),
		fmt.Sprintf("seq %d", train.SeqLen), fmt.Sprintf("batch %d", train.GlobalBatch),
		fmt.Sprintf("%d × %s = %d %s", c.Cluster.Nodes, c.Cluster.Name, c.Cluster.Devices, c.Cluster.GPU)}) +
		"\n" + strings.ReplaceAll(layout.Table(columns, rows), noBreak, " ")
}
