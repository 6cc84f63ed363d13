package screen

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
)

// SweepDocument is the planner's document of a sweep with the title of its screen.
type SweepDocument struct {
	*planner.SweepDocument
	title string
}

// NewSweepDocument returns the document of a sweep of a job.
func NewSweepDocument(q *planner.Question, s planner.Sweep, d *planner.SweepDocument) *SweepDocument {
	return &SweepDocument{d, withEngine(sweepTitle(q, s), "engine "+q.Train.Engine, measuredWords(q))}
}

// sweepTitle returns the question without the swept field.
func sweepTitle(q *planner.Question, s planner.Sweep) string {
	words := []string{fmt.Sprintf("%s  %s params", layout.Clip(q.Config.Name, maxNameWidth),
		amount.Params(q.Config.Params()))}
	if s.Key != "seq_len" {
		words = append(words, fmt.Sprintf("seq %d", q.Train.SeqLen))
	}
	if s.Key != "global_batch" {
		words = append(words, fmt.Sprintf("batch %d", q.Train.GlobalBatch))
	}
	words = append(append(words, precisionName(q.Train.Precision)), roundingWords(q.Train.Precision)...)
	c := q.Hardware
	switch s.Key {
	case "gpus", "nodes":
		words = append(words, fmt.Sprintf("%s: %s", layout.Clip(c.Name, maxNameWidth), c.GPU.Name))
	default:
		words = append(words, fmt.Sprintf("%s: %d %s", planner.ClusterText(c), c.Devices(), c.GPU.Name))
	}
	return layout.Flow("", 0, " · ", words)
}

// minPlanWidth is the minimal width of the column of plans. If less is left, each plan gets its own line.
const minPlanWidth = 28

// Sweep formats a sweep: its rows, and how well training scales with devices.
func Sweep(d *SweepDocument) string { return sweepRows(d) + scalingRows(d) }

// sweepRows formats a sweep: one row per value.
func sweepRows(d *SweepDocument) string {
	columns, rows := d.sweepColumns(), [][]string{}
	last := len(columns) - 1
	for _, r := range d.Rows {
		rows = append(rows, rowCells(&r, columns))
	}
	var b strings.Builder
	b.WriteString(d.title + "\n")
	if layout.ScreenWidth-layout.TableWidth(columns[:last], rows) >= minPlanWidth {
		b.WriteString(layout.Table(columns, rows) + d.partNote() + d.batchNote())
		return b.String()
	}
	plans := make([]string, len(rows))
	for i := range rows {
		plans[i], rows[i] = rows[i][last], rows[i][:last]
	}
	lines := strings.SplitAfter(layout.Table(columns[:last], rows), "\n")
	b.WriteString(lines[0])
	for i, p := range plans {
		b.WriteString(lines[i+1] + layout.Prose("", sweepIndent, p))
	}
	return b.String() + d.partNote() + d.batchNote()
}

// partNote explains the cost column: it is the cost of a billion tokens if the job does not say how many tokens it
// trains on, and that of whole nodes if a row uses part of a node; "" if neither holds.
func (d *SweepDocument) partNote() string {
	text, part := "", ""
	for _, r := range d.Rows {
		billion := r.CostPerBillion != nil && r.Training == nil
		priced := billion || r.Training != nil && r.Training.Cost != nil
		if billion && text == "" {
			text = billionTitle + " is the cost of training on a billion tokens, for whole nodes"
			if r.Currency != "" {
				text += ", in " + r.Currency
			}
		}
		if r.Fits && priced && part == "" && r.Cluster.Devices < r.Cluster.Nodes*d.NodeDevices {
			part = fmt.Sprintf(": %d of the %d %s of a node cost as much as all", r.Cluster.Devices/r.Cluster.Nodes,
				d.NodeDevices, d.devices())
		}
	}
	if text == "" && part != "" {
		text = costTitle + " is for whole nodes"
	}
	if text == "" {
		return ""
	}
	return layout.Prose("", 0, text+part+".")
}

// sweepIndent is the column where plans on their own lines begin.
const sweepIndent = 8

// Titles of optional columns, and of the last one.
const daysTitle, costTitle, billionTitle, planTitle = "TRAINING", "COST", "COST/B", "PLAN"

// sweepColumns returns the columns that are not empty in every row.
func (d *SweepDocument) sweepColumns() []layout.Column {
	relative := "SCALING"
	if d.Sweep != "gpus" && d.Sweep != "nodes" {
		relative = "RELATIVE"
	}
	each := "PER GPU"
	if d.IsCPU {
		each = "PER DEVICE"
	}
	swept := strings.ToUpper(d.Sweep)
	if d.Sweep == "gpus" {
		swept = d.deviceTitle()
	}
	out := []layout.Column{layout.Right(swept), layout.Right("STEP"), layout.Right("TOKENS/S"), layout.Right(each),
		layout.Right("MEMORY"), layout.Right(relative)}
	days, cost, billion := false, false, false
	for _, r := range d.Rows {
		billion = billion || r.CostPerBillion != nil
		if r.Training != nil {
			days, cost = true, cost || r.Training.Cost != nil
		}
	}
	if days {
		out = append(out, layout.Right(daysTitle))
	}
	switch {
	case cost:
		out = append(out, layout.Right(d.costTitle()))
	case billion && !days:
		out = append(out, layout.Right(billionTitle))
	}
	return append(out, layout.Left(planTitle))
}

// costTitle returns the title of the cost column, with the currency if all rows have the same.
func (d *SweepDocument) costTitle() string {
	currency := ""
	for _, r := range d.Rows {
		if r.Training != nil && r.Training.Cost != nil {
			if currency != "" && r.Training.Currency != currency {
				return costTitle
			}
			currency = r.Training.Currency
		}
	}
	return strings.TrimSuffix(costTitle+" "+currency, " ")
}

// rowCells returns the cells of a row, one for each column.
func rowCells(r *planner.SweepRow, columns []layout.Column) []string {
	out := []string{quantity.Count(r.Value), "–", "", "", "", ""}
	text := r.Message
	if r.Predict != nil {
		out[4] = quantity.Bytes(r.Predict.MemoryBytes.Total)
		out[1] = "no fit"
		text = r.Message + ": " + briefPlan(r.Plan.Plan)
	}
	if r.Fits {
		p := r.Predict
		out = []string{out[0], quantity.Seconds(float64(p.StepS)), amount.Short(p.TokensPerS),
			amount.Short(p.TokensPerSGPU),
			out[4], wholePercent(*r.Efficiency)}
		text = briefPlan(r.Plan.Plan)
	}
	for _, c := range columns[len(out) : len(columns)-1] {
		out = append(out, rowAmount(r, c.Title))
	}
	return append(out, text)
}

// rowAmount returns the cell of the training time or of the cost.
func rowAmount(r *planner.SweepRow, title string) string {
	t := r.Training
	switch {
	case title == billionTitle && r.CostPerBillion == nil:
		return ""
	case title == billionTitle:
		return amount.Short(math.Round(100**r.CostPerBillion) / 100)
	case t == nil, title != daysTitle && t.Cost == nil:
		return ""
	case title == daysTitle:
		return durationText(t.Days)
	}
	return amount.Short(math.Round(*t.Cost))
}

func wholePercent(f float64) string { return strconv.FormatFloat(100*f, 'f', 0, 64) + " %" }

// briefPlan returns a plan without the word micro_batch, for tables.
func briefPlan(p ir.Plan) string {
	return strings.ReplaceAll(p.String(), "micro_batch ", "")
}

// batchNote says for which rows the batch is the reason that they are slow, one line each; "" if there are none.
func (d *SweepDocument) batchNote() string {
	var b strings.Builder
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.NearBatch == nil {
			continue
		}
		b.WriteString(layout.Prose("", 0, fmt.Sprintf("%s %s do not divide the batch of %s: with %s each trains on %s "+
			"tokens/s, %s.",
			quantity.Count(r.Cluster.Devices), d.devices(), quantity.Count(r.JobBatch),
			search.Change{Set: r.NearBatch.Set}.Args(),
			amount.Short(r.NearBatch.Predict.TokensPerSGPU), quantity.Signed(r.NearBatch.Speedup))))
	}
	return b.String()
}
