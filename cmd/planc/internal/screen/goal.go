package screen

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
)

// goalSentence says how many devices of which kind the objective chose, and the rate that they reach in tokens per
// second.
func goalSentence(g *planner.Goal, reached float64, device string) string {
	s := fmt.Sprintf("%s: %d of %d", g.Kind, g.Devices, g.Available)
	var more []string
	if g.HasOpenNodeCount {
		s = fmt.Sprintf("%s: %d", g.Kind, g.Devices)
		more = append(more, fmt.Sprintf("--nodes sets no limit: up to %s %s were looked at",
			quantity.Count(g.Available), layout.Plural(g.Available, device)))
	}
	switch {
	case g.TokensPerS > 0:
		s += fmt.Sprintf(" reach %s of the %s tokens/s wanted", amount.Short(reached), amount.Short(g.TokensPerS))
	default:
		s += " train at the least " + g.Kind
	}
	if g.Fewer > 0 && g.Kind == spec.Devices {
		s += fmt.Sprintf(", of fewer %d come nearest with %s", g.Fewer, amount.Short(g.FewerTokensPerS))
	}
	if g.JoulesPerToken != nil {
		more = append(more, amount.Short(*g.JoulesPerToken)+" J a token")
	}
	if g.CostPerDay != nil {
		more = append(more, money{g.Currency}.text(*g.CostPerDay)+" a day")
	}
	if g.NearBatch != nil {
		more = append(more, nearSizeSentence(g.NearBatch))
	}
	return strings.Join(append([]string{s}, more...), "; ")
}

// nearSizeSentence says what another number of devices would reach or save with a near batch.
func nearSizeSentence(n *planner.NearSize) string {
	text := fmt.Sprintf("%s reach it with", quantity.Count(n.Devices))
	if n.Saves > 0 {
		text = fmt.Sprintf("%s need %s less with", quantity.Count(n.Devices), quantity.Percent(n.Saves))
	}
	return fmt.Sprintf("%s %s, as they do not divide the batch of %s", text, search.Change{Set: n.Set}.Args(),
		quantity.Count(n.JobBatch))
}
