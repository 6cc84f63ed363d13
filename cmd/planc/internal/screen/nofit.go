package screen

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner/quantity"
)

// NoPlan returns what follows the message that nothing fits: the plan that lacks least memory, and the changes
// under which a plan fits, each with its additional cost per hour.
func NoPlan(plan string, p costmodel.Predict, stage int, staged bool, changes []search.Change,
	now *costmodel.Cluster) string {
	var b strings.Builder
	m := p.MemoryBytes
	at := ""
	if staged {
		at = fmt.Sprintf(" on stage %d", stage)
	}
	var parts []string
	for _, name := range costmodel.MemoryParts {
		if n := m.Part(name); n > 0 {
			parts = append(parts, name+" "+quantity.Bytes(n))
		}
	}
	text := fmt.Sprintf("%s: %s%s, %s usable: %s over. %s", plan, quantity.Bytes(m.Total), at,
		quantity.Bytes(m.Capacity),
		quantity.Bytes(m.Total-m.Capacity), strings.Join(parts, ", "))
	b.WriteString(layout.Prose("  nearest", 12, text))
	if len(changes) == 0 {
		return b.String()
	}
	b.WriteString("  would fit, cheapest hardware first\n")
	const figures = 40 // the column at which memory and time begin
	for _, c := range changes {
		text := strings.TrimSuffix(layout.Flow("", 4, " ", c.Words()), "\n")
		if last := text[strings.LastIndexByte(text, '\n')+1:]; layout.Width(last) > figures {
			text += "\n" + strings.Repeat(" ", figures)
		} else {
			text += strings.Repeat(" ", figures-layout.Width(last))
		}
		p := c.Best.Predict
		b.WriteString(text + "  " + layout.Pad(quantity.Bytes(p.MemoryBytes.Total), 9) + "  step " +
			quantity.Seconds(float64(p.StepS)) +
			morePerHour(c, now) + "\n")
	}
	return b.String()
}

// morePerHour returns the additional cost of an hour with a change; "" if there is none, or if the cluster has no
// price.
func morePerHour(c search.Change, now *costmodel.Cluster) string {
	more := c.PricePerHour() - search.Change{Cluster: now}.PricePerHour()
	if more <= 0 {
		return ""
	}
	return "  +" + money{now.Node.Currency}.text(more) + "/h"
}
