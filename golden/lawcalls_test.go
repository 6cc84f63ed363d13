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
			c.plan.MoESlack > 0 && c.plan.RecomputeEvery > 1 { // of which some blocks do their rounds more often than others
			continue
		}
		want, got := c.calls(t, v.Rounds), ranksCalls(v, c.plan.Ranks())
		if !maps.Equal(got, want) {
			t.Errorf("%s %v (%s): ranks do in the first step\n%swant\n%s", c.group, c.plan, c.id, callsText(got), callsText(want))
		}
		calls += len(want)
	}
	t.Logf("%d lists of calls are those of the programs", calls)
}

// calls are the lists of the program's ranks, and how many have each. Those of experts' rounds are done as often as the tokens
// of the rank needed, which the run counted.
func (c *lawCase) calls(t *testing.T, rounds []int) map[string]int {
	t.Helper()
	prog, out := c.program(t), map[string]int{}
	all := stageCalls(prog)
	dropRounds(prog)
	once := stageCalls(prog)
	for rank := range c.plan.Ranks() {
		stage := stageOf(prog, rank)
		if c.plan.MoESlack == 0 { // room for every token: there is one round
			out[callText(all[stage])]++
			continue
		}
		list, passes := maps.Clone(once[stage]), c.plan.MicroBatches*blocksOf(&prog.Stages[stage])
		for call, n := range all[stage] {
			if n -= once[stage][call]; n == 0 {
				continue
			}
			each := n / passes // of a block's passes over a micro-batch
			if n%passes != 0 || len(rounds) == 0 {
				t.Fatalf("%s %v: %d × %s in %d passes of %v rounds", c.group, c.plan, n, call, passes, rounds)
			}
			list[call] += each * rounds[rank]
		}
		out[callText(list)]++
	}
	return out
}

// stageCalls are the lists of the program's stages, of one round for each block and micro-batch.
func stageCalls(prog *ir.Program) (lists []map[string]int) {
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
		lists = append(lists, list)
	}
	return lists
}

// dropRounds leaves out the collectives of experts' rounds.
func dropRounds(prog *ir.Program) {
	for _, s := range prog.Model.Variants() {
		for _, f := range s.Funcs() {
			f.Nodes = slices.DeleteFunc(f.Nodes, func(n *ir.Node) bool { return n.Op.Comm() && n.Attr.Round })
		}
	}
}

// stageOf is the stage of a rank.
func stageOf(prog *ir.Program, rank int) int {
	for _, a := range prog.Mesh.Atoms {
		if a.Name == "pp" {
			return rank % a.Size
		}
		rank /= a.Size
	}
	return 0
}

// blocksOf is how many blocks a stage has.
func blocksOf(s *ir.Stage) (n int) {
	for _, c := range s.Chunks {
		for _, r := range c.Runs {
			if r.Segment == "block" {
				n += r.Count
			}
		}
	}
	return n
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
