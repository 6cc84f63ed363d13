package laws_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/price"
)

// callsAreThePrograms checks that the communication of the first step equals the list that the search prices:
// collectives by op, group size, bytes and count, and messages between stages. If a plan reduces in 16 bits, the CPU
// sends the rounded numbers in 32, so only full precision is compared.
func callsAreThePrograms(t *testing.T, cases []lawCase, verdicts []lawVerdict) {
	t.Helper()
	calls := 0
	for i := range cases {
		c, v := &cases[i], &verdicts[i]
		if c.plan.Precision != ir.FullPrecision(c.elem) || c.before != "" || c.spoil != nil || v.Err != "" {
			continue
		}
		want, got := c.calls(t, v.Rounds), ranksCalls(v, c.plan.Ranks())
		if !maps.Equal(got, want) {
			t.Errorf("law broken: %s %v (%s): ranks do in the first step\n%swant\n%s", c.group, c.plan, c.id,
				callsText(got),
				callsText(want))
		}
		calls += len(want)
	}
	t.Logf("%d lists of calls are those of the programs", calls)
}

// calls returns the lists of the program's ranks, and the number of ranks with each. Collectives of experts' rounds
// occur as often as the rank's tokens needed in each layer, which the run counted.
func (c *lawCase) calls(t *testing.T, rounds map[string][]int) map[string]int {
	t.Helper()
	prog, out := c.program(t), map[string]int{}
	all := stageCalls(prog)
	if c.plan.MoESlack == 0 { // capacity for every token: there is one round
		for rank := range c.plan.Ranks() {
			out[callText(all[stageOf(prog, rank)])]++
		}
		return out
	}
	bare := c.program(t)
	dropRounds(bare)
	once := stageCalls(bare)
	for rank := range c.plan.Ranks() {
		stage := stageOf(prog, rank)
		list := maps.Clone(once[stage])
		for layer, calls := range layerRounds(prog, bare, stage) {
			for call, n := range calls {
				if len(rounds[layer]) <= rank {
					t.Fatalf("%s %v: %s of %s, which counted no rounds", c.group, c.plan, call, layer)
				}
				list[call] += n * rounds[layer][rank]
			}
		}
		out[callText(list)]++
	}
	return out
}

// layerRounds returns the calls of each layer of a stage in one round of a micro-batch: those of its passes minus
// those of the program without rounds.
func layerRounds(prog, bare *ir.Program, stage int) map[string]map[string]int {
	out := map[string]map[string]int{}
	for chunk := range prog.Stages[stage].Chunks {
		for _, run := range prog.Stages[stage].Chunks[chunk].Runs {
			for k := range run.Count {
				calls := layerCalls(prog, stage, chunk, run, k)
				for call, n := range layerCalls(bare, stage, chunk, run, k) {
					calls[call] -= n
				}
				maps.DeleteFunc(calls, func(_ string, n int) bool { return n == 0 })
				out[fmt.Sprintf("%s %d", run.Segment, run.From+k)] = calls
			}
		}
	}
	return out
}

// layerCalls returns the calls of a stage that runs only the passes of layer k over one micro-batch.
func layerCalls(prog *ir.Program, stage, chunk int, run ir.Run, k int) map[string]int {
	whole := prog.Stages[stage]
	defer func() { prog.Stages[stage] = whole }()
	run.From, run.Count = run.From+k, 1
	s := &prog.Stages[stage]
	s.Schedule, s.Chunks = nil, slices.Clone(whole.Chunks)
	s.Chunks[chunk].Runs = []ir.Run{run}
	for _, a := range whole.Schedule {
		if a.Kind != ir.Finish && a.Chunk == chunk && !slices.Contains(s.Schedule, a) {
			s.Schedule = append(s.Schedule, a)
		}
	}
	return callsOf(prog, stage)
}

// stageCalls returns the lists of the program's stages, with one round per block and micro-batch.
func stageCalls(prog *ir.Program) (lists []map[string]int) {
	for stage := range prog.Stages {
		lists = append(lists, callsOf(prog, stage))
	}
	return lists
}

func callsOf(prog *ir.Program, stage int) map[string]int {
	traffic, _ := price.Compiled(prog, stage)
	list := map[string]int{}
	for _, m := range traffic {
		ranks := m.Ranks
		if m.Op == ir.OpSend || m.Op == ir.OpReceive {
			ranks = 2 // of the axis
		}
		list[fmt.Sprintf("%s of %d ranks, %d bytes", m.Op, ranks, m.Bytes)] += m.Count
	}
	return list
}

// dropRounds removes the collectives of experts' rounds.
func dropRounds(prog *ir.Program) {
	for _, s := range prog.Model.Variants() {
		for _, f := range s.Funcs() {
			f.Nodes = slices.DeleteFunc(f.Nodes, func(n *ir.Node) bool { return n.Op.Comm() && n.Attr.Round })
		}
	}
}

// stageOf returns the stage of a rank.
func stageOf(prog *ir.Program, rank int) int {
	for _, a := range prog.Mesh.Atoms {
		if a.Name == "pp" {
			return rank % a.Size
		}
		rank /= a.Size
	}
	return 0
}

// ranksCalls returns the lists of what ranks did, and the number of ranks with each.
func ranksCalls(v *lawVerdict, ranks int) map[string]int {
	out := map[string]int{}
	for rank := range ranks {
		out[callText(v.Calls[rank])]++
	}
	return out
}

// callText returns a list in a fixed order, with one call per line.
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
