package golden_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// callsAreThePrograms holds what ranks sent each other in the first step to the list that the search prices: collectives by
// op, size of the group and bytes, and messages between stages, each so often. Where a plan reduces in 16 bits the CPU sends
// the rounded numbers in 32, so full precision judges alone.
func callsAreThePrograms(t *testing.T, cases []lawCase, verdicts []lawVerdict) {
	t.Helper()
	calls := 0
	for i := range cases {
		c, v := &cases[i], &verdicts[i]
		if c.plan.Precision != ir.FullPrecision(c.elem) || c.before != "" || c.spoil != nil || v.Err != "" ||
			c.plan.MoESlack > 0 { // whose tokens say how many rounds there are
			continue
		}
		want, got := c.calls(t), ranksCalls(v, c.plan.Ranks())
		if !maps.Equal(got, want) {
			t.Errorf("%s %v (%s): ranks do in the first step\n%swant\n%s", c.group, c.plan, c.id, callsText(got), callsText(want))
		}
		calls += len(want)
	}
	t.Logf("%d lists of calls are those of the programs", calls)
}

// calls are the lists of the program's stages, and how many ranks have each.
func (c *lawCase) calls(t *testing.T) map[string]int {
	t.Helper()
	prog, out := c.program(t), map[string]int{}
	for stage := range prog.Stages {
		traffic, _ := search.Compiled(prog, stage)
		list := map[string]int{}
		for _, m := range traffic {
			ranks := m.Ranks
			if m.Op == ir.OpSend || m.Op == ir.OpReceive {
				ranks = 2 // of those on the axis
			}
			list[fmt.Sprintf("%s of %d ranks, %d bytes", m.Op, ranks, m.Bytes)] += m.Count
		}
		out[callText(list)] += c.plan.Ranks() / len(prog.Stages)
	}
	return out
}

// ranksCalls are the lists of what ranks did, and how many did each.
func ranksCalls(v *lawVerdict, ranks int) map[string]int {
	out := map[string]int{}
	for rank := range ranks {
		out[callText(v.Calls[rank])]++
	}
	return out
}

// callText is a list in one order, a call a line.
func callText(list map[string]int) string {
	var lines []string
	for _, call := range slices.Sorted(maps.Keys(list)) {
		lines = append(lines, fmt.Sprintf("    %d × %s\n", list[call], call))
	}
	return strings.Join(lines, "")
}

func callsText(lists map[string]int) string {
	text := ""
	for _, list := range slices.Sorted(maps.Keys(lists)) {
		text += fmt.Sprintf("  on %d ranks\n%s", lists[list], list)
	}
	return text
}
