package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
)

// Side is one of two decisions to compare.
type Side struct {
	Plan    ir.Plan
	Predict costmodel.Predict
	Model   int // version of the cost model
}

// Difference compares two decisions.
type Difference struct {
	head               string
	fields             []lock.Change // changed fields of the job
	from, to           Side
	hasPrecisionChange bool   // train.precision differs, from which the plan's precision follows
	batch              string // from planner.BatchChange; "" if the batch is the same, or neither side is a lock
}

// hasPrecisionChange reports whether the changes include a field of train.precision.
func hasPrecisionChange(changes []lock.Change) bool {
	return slices.ContainsFunc(changes, func(c lock.Change) bool {
		return strings.HasPrefix(c.Path(), "train.precision")
	})
}

// NewDifference compares two decisions. fields are the fields of the job that differ.
func NewDifference(head string, fields []lock.Change, from, to Side) *Difference {
	return &Difference{head: head, fields: fields, from: from, to: to,
		hasPrecisionChange: hasPrecisionChange(fields)}
}

// LockDifference compares a lock with the current decision.
func LockDifference(l *lock.Job, q *planner.Question, best search.Priced) *Difference {
	return &Difference{
		head: decidedFor(l), fields: unnamedChanges(l),
		from: Side{l.File.Plan, l.File.Predict, l.File.CostModel},
		to:   Side{best.Plan, best.Predict, costmodel.CostModel}, hasPrecisionChange: hasPrecisionChange(l.Changed),
		batch: planner.BatchChange(q, l.Batch()),
	}
}

// decidedFor says which job the lock was written for, and which job is given now.
func decidedFor(l *lock.Job) string {
	from, to := twoClusters(l.File.Inputs["cluster"], l.Inputs["cluster"])
	fields := SignificantChanges(l.Changed)
	switch {
	case len(l.Changed) == 0:
		return fmt.Sprintf("%s was written for the same job", l.Name())
	case from != to && onlyCluster(fields):
		return fmt.Sprintf("%s was written for %s; the job now has %s", l.Name(), from, to)
	case len(fields) == 1:
		f := fields[0]
		return fmt.Sprintf("%s was written for %s %s; the job now has %s", l.Name(), f.Path(), cmp.Or(f.From, "none"),
			cmp.Or(f.To, "none"))
	}
	return fmt.Sprintf("%s was written for another job: %s", l.Name(), ChangedSections(l.Changed))
}

// twoClusters formats two clusters, with their devices if nothing else distinguishes them.
func twoClusters(a, b map[string]string) (string, string) {
	word := func(c map[string]string) string { return fmt.Sprintf("%s × %s", c["nodes"], c["name"]) }
	from, to := word(a), word(b)
	if from == to && a["node.devices"] != b["node.devices"] {
		from, to = from+" with "+a["node.devices"]+" devices", to+" with "+b["node.devices"]+" devices"
	}
	return from, to
}

// identity lists the fields that identify a cluster. If they differ, differences of its figures are implied.
var identity = []string{"name", "nodes", "node.devices"}

// SignificantChanges returns the changes without those of cluster figures that a change of the cluster's identity
// implies.
func SignificantChanges(changes []lock.Change) []lock.Change {
	isOther := func(c lock.Change) bool { return c.Section == "cluster" && slices.Contains(identity, c.Key) }
	if !slices.ContainsFunc(changes, isOther) {
		return changes
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c lock.Change) bool {
		return c.Section == "cluster" && !isOther(c)
	})
}

func onlyCluster(changes []lock.Change) bool {
	return !slices.ContainsFunc(changes, func(c lock.Change) bool { return c.Section != "cluster" })
}

// unnamedChanges returns the changes that decidedFor does not mention.
func unnamedChanges(l *lock.Job) []lock.Change {
	from, to := twoClusters(l.File.Inputs["cluster"], l.Inputs["cluster"])
	fields := SignificantChanges(l.Changed)
	if len(fields) == 1 || from != to && onlyCluster(fields) {
		return nil
	}
	return fields
}

// ChangedSections names the sections of the job that changed: "model and train changed".
func ChangedSections(changes []lock.Change) string {
	var names []string
	for _, c := range changes {
		if !slices.Contains(names, c.Section) {
			names = append(names, c.Section)
		}
	}
	if len(names) > 1 {
		names = []string{strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]}
	}
	return strings.Join(names, "") + " changed"
}

// Text formats the difference. last is an optional last line.
func (d *Difference) Text(last string) string {
	text := layout.Flow("", 0, " ", strings.Split(d.head, " ")) + d.body()
	if last != "" {
		text += last + "\n"
	}
	return text
}

// Review formats the difference below a line that names the changed sections. It repeats the title only if that names
// the changed field.
func (d *Difference) Review() string {
	if d.fields != nil {
		return d.body()
	}
	return layout.Flow("", 0, " ", strings.Split(d.head, " ")) + d.body()
}

// body formats the difference without its title.
func (d *Difference) body() string {
	text := changeRows(d.fields, lock.Change.Path) + d.planRows() + d.figures()
	if d.batch != "" {
		text += layout.Flow("  rate    ", 10, " ", strings.Split(d.batch, " "))
	}
	return text
}

// maxRows is the maximal number of changes of a kind on a screen.
const maxRows = 16

// changeRows formats changes as lines "  ~ dp  8 -> 16".
func changeRows(changes []lock.Change, name func(lock.Change) string) string {
	var b strings.Builder
	names, values := 0, 0
	shown := slices.Clone(changes[:min(len(changes), maxRows)])
	for i := range shown {
		c := &shown[i]
		c.From, c.To = clipped(c.From), clipped(c.To)
		names, values = max(names, layout.Width(name(*c))), max(values, layout.Width(c.From))
	}
	for _, c := range shown {
		switch {
		case c.From == "":
			fmt.Fprintf(&b, "  + %s %s\n", layout.Pad(name(c), names), c.To)
		case c.To == "":
			fmt.Fprintf(&b, "  - %s %s\n", layout.Pad(name(c), names), c.From)
		default:
			fmt.Fprintf(&b, "  ~ %s %s -> %s\n", layout.Pad(name(c), names), layout.PadLeft(c.From, values), c.To)
		}
	}
	if more := len(changes) - len(shown); more > 0 {
		fmt.Fprintf(&b, "    and %d more\n", more)
	}
	return b.String()
}

// clipped shortens a value so that two fit on a line.
func clipped(value string) string {
	const maxLen = 24
	if r := []rune(value); len(r) > maxLen {
		return string(r[:maxLen-1]) + "…"
	}
	return value
}

// planRows formats the keys of the plan that differ, and those that are unchanged.
func (d *Difference) planRows() string {
	changes := lock.PlanChanges(d.from.Plan, d.to.Plan)
	if d.hasPrecisionChange { // it is listed as a change of the job
		changes = slices.DeleteFunc(changes, func(c lock.Change) bool { return c.Key == "precision" })
	}
	if len(changes) == 0 {
		return layout.Flow("    ", 4, " ", strings.Split("the plan is the same: "+d.to.Plan.String(), " "))
	}
	out := changeRows(changes, func(c lock.Change) string { return c.Key })
	var same []string
	was := planWords(d.from.Plan)
	for _, w := range planWords(d.to.Plan) {
		key, _, _ := strings.Cut(w, " ")
		if key == "micro_batch" && d.from.Plan.MicroBatch == d.to.Plan.MicroBatch {
			same = append(same, fmt.Sprintf("micro_batch %d", d.to.Plan.MicroBatch))
		} else if slices.Contains(was, w) {
			same = append(same, w)
		}
	}
	if len(same) > 0 {
		out += layout.Flow("    ", 4, " ", strings.Split(strings.Join(same, ", ")+": unchanged", " "))
	}
	return out
}

// devicesOf compares m devices with n: "2 × the devices", "1/2 of the devices".
func devicesOf(m, n int) string {
	if m > n {
		return amount.Short(float64(m)/float64(n)) + " × the devices"
	}
	a, b := m, n
	for b > 0 {
		a, b = b, a%b
	}
	return fmt.Sprintf("%d/%d of the devices", m/a, n/a)
}

// figures formats the step time and the memory of both sides.
func (d *Difference) figures() string {
	a, b := d.from.Predict, d.to.Predict
	step := fmt.Sprintf("  step    %s -> %s", quantity.Seconds(float64(a.StepS)), quantity.Seconds(float64(b.StepS)))
	n, m := d.from.Plan.Ranks(), d.to.Plan.Ranks()
	switch ratio := float64(b.StepS / a.StepS); {
	case a.StepS <= 0 || b.StepS <= 0 || a.StepS == b.StepS:
	case n != m && n > 0:
		step += fmt.Sprintf("    %s × as fast on %s", amount.Digits(1/ratio, 3), devicesOf(m, n))
	case ratio >= 2: // large percentages, such as +13900 %, are hard to read
		step += fmt.Sprintf("    %s × as long", amount.Digits(ratio, 3))
	default:
		step += "    " + quantity.Signed(ratio-1)
	}
	if d.from.Model != d.to.Model {
		step += fmt.Sprintf("    (cost model %d -> %d)", d.from.Model, d.to.Model)
	}
	from, to := quantity.BytesPair(a.MemoryBytes.Total, b.MemoryBytes.Total)
	if unit(from) == unit(to) {
		from = strings.TrimSuffix(from, unit(from))
	}
	return step + fmt.Sprintf("\n  memory  %s -> %s\n", from, to)
}
