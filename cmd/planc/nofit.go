package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
)

// noFitScreen is screens.md's screen 5 after its first line: the plan that comes nearest, and what would fit.
func noFitScreen(plan string, p costmodel.Predict, stage int, staged bool, changes []nearest) string {
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
		line := "    " + setArguments(c.Set)
		if width(line) > figures {
			b.WriteString(line + "\n")
			line = ""
		}
		line = pad(line, figures)
		if c.Predict != nil {
			line += "  " + pad(size(c.Predict.MemoryBytes.Total), 9) + "  step " + seconds(float64(c.Predict.StepS))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// setArguments is a change as the user would type it.
func setArguments(set map[string]any) string {
	var args []string
	for _, key := range slices.Sorted(maps.Keys(set)) {
		arg := fmt.Sprintf("%s=%s", key, yamlValue(set[key]))
		if strings.ContainsAny(arg, " []{}*?") {
			arg = "'" + arg + "'"
		}
		args = append(args, "--set "+arg)
	}
	return strings.Join(args, " ")
}

// yamlValue is a value as --set reads it.
func yamlValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case []string:
		return "[" + strings.Join(v, ",") + "]"
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = yamlValue(v[i])
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	return fmt.Sprint(v)
}
