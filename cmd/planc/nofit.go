package main

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search"
)

// tried says which changes of the job package search looks at where nothing fits: see larger there.
func (j *loaded) tried() string {
	var words []string
	if pins := search.PinsOf(&j.Plan); len(pins) > 0 {
		words = append(words, "the job's pins given up")
	}
	if j.Objective.Headroom > search.LeastHeadroom {
		words = append(words, fmt.Sprintf("headroom %v", search.LeastHeadroom))
	}
	for _, t := range j.narrowerState() {
		words = append(words, precisionWords(t.Set))
	}
	c := j.cluster
	if n := j.wholeNode(); n > c.Node.Devices {
		words = append(words, fmt.Sprintf("up to %d devices of a node", n))
	}
	if len(c.Network) > 0 {
		words = append(words, "more nodes, up to "+grouped(search.MostNodes(c.Nodes)))
	} else {
		words = append(words, "the batch halved, the sequence halved")
	}
	return strings.Join(words, "; ")
}

// batchHints are what a batch that no plan divides could be changed to, or the devices of a node.
func (j *loaded) batchHints() string {
	c, batch := j.cluster, j.Train.GlobalBatch
	for n := c.Node.Devices - 1; n > 0; n-- {
		if batch%(n*c.Nodes) == 0 {
			return fmt.Sprintf("; with --devices %d of the %d of a node it is divided", n, c.Node.Devices)
		}
	}
	return ""
}

// noFitScreen is screens.md's screen 5 after its first line: the plan that comes nearest, and what would fit, with what
// an hour costs more than on the cluster now.
func noFitScreen(plan string, p costmodel.Predict, stage int, staged bool, changes []search.Change,
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
			parts = append(parts, name+" "+size(n))
		}
	}
	text := fmt.Sprintf("%s: %s%s, %s usable: %s over. %s", plan, size(m.Total), at, size(m.Capacity),
		size(m.Total-m.Capacity), strings.Join(parts, ", "))
	b.WriteString(prose("  nearest", 12, text))
	if len(changes) == 0 {
		return b.String()
	}
	b.WriteString("  would fit, cheapest first\n")
	const figures = 40 // the column at which memory and time begin
	for _, c := range changes {
		text := strings.TrimSuffix(flow("", 4, " ", c.Words()), "\n")
		if last := text[strings.LastIndexByte(text, '\n')+1:]; width(last) > figures {
			text += "\n" + strings.Repeat(" ", figures)
		} else {
			text += strings.Repeat(" ", figures-width(last))
		}
		p := c.Best.Predict
		b.WriteString(text + "  " + pad(size(p.MemoryBytes.Total), 9) + "  step " + seconds(float64(p.StepS)) +
			morePerHour(c, now) + "\n")
	}
	return b.String()
}

// morePerHour is what an hour costs more with a change; "" if nothing, or if the cluster has no price.
func morePerHour(c search.Change, now *costmodel.Cluster) string {
	more := c.PricePerHour() - search.Change{Cluster: now}.PricePerHour()
	if more <= 0 {
		return ""
	}
	return "  +" + money{now.Node.Currency}.text(more) + "/h"
}
