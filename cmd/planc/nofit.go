package main

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search"
)

// noFitScreen is screens.md's screen 5 after its first line: the plan that comes nearest, and what would fit.
func noFitScreen(plan string, p costmodel.Predict, stage int, staged bool, changes []search.Change) string {
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
		b.WriteString(text + "  " + pad(size(p.MemoryBytes.Total), 9) + "  step " + seconds(float64(p.StepS)) + "\n")
	}
	return b.String()
}
