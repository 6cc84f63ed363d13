package ir_test

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
	"github.com/planc-dev/planc/runtime/program"
)

// pipelined is a program of two layers whose chunks have the given blocks.
func pipelined(t *testing.T, schedule, stageLayers string, pp, vpp, micro int) *ir.Program {
	t.Helper()
	c := smallGPT
	c.Layers, c.Tied = 2, true
	plan := ir.SerialPlan(2, 1, ir.FullPrecision(ir.F32))
	plan.PP, plan.VPP, plan.MicroBatches, plan.Schedule, plan.StageLayers, plan.AxisOrder = pp, vpp, micro, schedule,
		stageLayers, "tp,dp,pp"
	p, err := passes.Compile(build(c), plan, ir.Recipe{Optimizer: "sgd"}, passes.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A schedule in which anything is wrong is found, and what is said names the stage, the action and the micro-batch.
func TestWrongSchedules(t *testing.T) {
	h1 := func(t *testing.T) *ir.Program { return pipelined(t, "zb-h1", "1,1", 2, 1, 3) }
	f1b := func(t *testing.T) *ir.Program { return pipelined(t, "1f1b", "1,1", 2, 1, 3) }
	for _, c := range []struct {
		name    string
		program func(*testing.T) *ir.Program
		stage   int
		do      string
		want    string
	}{
		{"backward before forward", f1b, 1, "B0 F0 F0 B0 F0 B0 U",
			"stage 1, action 0 (B0, micro-batch 0): its forward pass has not run"},
		{"one backward too many", f1b, 1, "(F0 B0)*3 B0 U",
			"stage 1, action 6 (B0, micro-batch 3): a step has 3 micro-batches"},
		{"a micro-batch left out", f1b, 1, "(F0 B0)*2 U", "stage 1: F0 of micro-batch 2 is missing"},
		{"backward left out", f1b, 0, "F0 (F0 B0)*2 U", "stage 0: B0 of micro-batch 2 is missing"},
		{"no update", f1b, 0, "F0 (F0 B0)*2 B0",
			"stage 0, action 5 (B0, micro-batch 2): the last action is not the update"},
		{"update too early", f1b, 0, "F0 (F0 B0)*2 U B0",
			"stage 0, action 5 (U, micro-batch 0): the update is not the last action"},
		{"no such chunk", f1b, 0, "F1 (F0 B0)*2 B0 U",
			"stage 0, action 0 (F1, micro-batch 0): the stage has no chunk 1"},
		{"too many in flight", f1b, 0, "F0*3 B0*3 U",
			"stage 0, action 2 (F0, micro-batch 2): its buffer is in use: 2 micro-batches are in flight, there are " +
				"2 buffers"},
		{"fewer in flight than there are buffers", f1b, 0, "(F0 B0)*3 U",
			"stage 0: chunk 0 has 2 buffers for 1 micro-batches in flight"},
		{"weights of a whole backward", f1b, 1, "(F0 B0)*3 W0 U",
			"stage 1, action 6 (W0, micro-batch 0): backward is not split under schedule 1f1b"},
		{"weights before backward", h1, 0, "F0 F0 W0 B0 F0 B0 W0 B0 W0 U",
			"stage 0, action 2 (W0, micro-batch 0): its backward pass has not run"},
		{"weights left out", h1, 0, "F0 (F0 B0 W0)*2 B0 U", "stage 0: W0 of micro-batch 2 is missing"},
		{"buffer freed by weights alone", h1, 0, "F0 F0 B0 F0 B0 W0 B0 W0*2 U",
			"stage 0, action 3 (F0, micro-batch 2): its buffer is in use: 2 micro-batches are in flight, there are " +
				"2 buffers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.program(t)
			check(t, p, map[int]string{c.stage: c.do}, c.want)
		})
	}
}

// check wants the checker to say something of a program whose stages follow other schedules.
func check(t *testing.T, p *ir.Program, do map[int]string, want string) {
	t.Helper()
	for i, s := range do {
		var err error
		p.Stages[i].Schedule, err = program.ParseSchedule(s)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Check(passes.Names()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// A deadlock is reported with what each stage waits for. Each stage's own order is right here.
func TestDeadlocks(t *testing.T) {
	for _, c := range []struct {
		name, schedule string
		micro          int
		do             map[int]string
		want           string
	}{
		{"inputs", "interleaved", 2, map[int]string{0: "F0*2 F1*2 B1*2 B0*2 U", 1: "F1 F0*2 F1 B1*2 B0*2 U"},
			"deadlock: stage 0, action 2 (F1, micro-batch 0) waits until chunk 1 has run forward of micro-batch 0; " +
				"stage 1, action 0 (F1, micro-batch 0) waits until chunk 2 has run forward of micro-batch 0"},
		{"gradients", "interleaved", 2, map[int]string{0: "F0*2 F1*2 B0 B1 B1 B0 U", 1: "F0*2 F1*2 B1*2 B0*2 U"},
			"deadlock: stage 0, action 4 (B0, micro-batch 0) waits until chunk 1 has run backward of micro-batch 0; " +
				"stage 1, action 6 (B0, micro-batch 0) waits until chunk 2 has run backward of micro-batch 0"},
		// The V's turn: stage 1 sends itself three gradients before it takes one.
		{"buffers", "zb-v", 3, map[int]string{0: "F0*3 F1*3 B1*3 B0*3 W1*3 W0*3 U",
			1: "F0*3 F1*3 B1*3 B0*3 W1*3 W0*3 U"},
			"stage 1, action 8 (B1, micro-batch 2) waits until chunk 1 receives the gradient of micro-batch 0 " +
				"from a buffer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pipelined(t, c.schedule, "0,1,1,0", 2, 2, c.micro)
			for i := range p.Stages {
				do, err := program.ParseSchedule(c.do[i])
				if err != nil {
					t.Fatal(err)
				}
				chunks := p.Stages[i].Chunks
				for j, n := range ir.InFlight([]ir.Turn{{Actions: do, Times: 1}}, len(chunks)) {
					chunks[j].Buffers = n
				}
			}
			check(t, p, c.do, c.want)
		})
	}
}

// Groups over the stages have one order of collectives.
func TestCollectivesAcrossStages(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*ir.Program)
		want  string
	}{
		{"left out", func(p *ir.Program) { p.Stages[1].Update.Nodes = p.Stages[1].Update.Nodes[1:] },
			`collective 0 over the stages is "loss_reduce" on stage 0 and "grad_norm" on stage 1`},
		{"the norm before the loss", func(p *ir.Program) {
			ns := p.Stages[1].Update.Nodes
			for i, n := range ns {
				if n.Op == ir.OpGradNorm {
					ns[0], ns[i] = ns[i], ns[0]
				}
			}
		}, `collective 0 over the stages is "loss_reduce" on stage 0 and "grad_norm" on stage 1`},
		{"tied parameters on one side", func(p *ir.Program) {
			for _, n := range p.Stages[1].Update.Nodes {
				n.Attr.FirstLast = false
			}
		}, "collective 1 over the stages is"},
		{"inside a block", func(p *ir.Program) {
			f := p.Model.Segment("block").Forward
			n := *f.Nodes[0]
			n.Op, n.Args, n.Attr = ir.OpAllReduce, n.Outs, ir.Attr{Axes: []ir.Axis{"pp"}}
			n.Outs = []*ir.Value{{Name: "wrong", Type: n.Args[0].Type, Def: &n}}
			f.Nodes = append(f.Nodes, &n)
		}, "runs over stages, which do not reach it together"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pipelined(t, "1f1b", "1,1", 2, 1, 3)
			c.spoil(p)
			check(t, p, nil, c.want)
		})
	}
}

// What the stages have of the model is whole.
func TestChunksWhole(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*ir.Program)
		want  string
	}{
		{"twice", func(p *ir.Program) { p.Stages[1].Chunks[0].Index = 0 }, "chunk 0 is on stage 0 and on stage 1"},
		{"missing", func(p *ir.Program) { p.Stages[1].Chunks[0].Index = 2 }, "no stage has chunk 1"},
		{"none", func(p *ir.Program) { p.Stages[1].Chunks = nil }, "stage 1 has no chunk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pipelined(t, "1f1b", "1,1", 2, 1, 3)
			c.spoil(p)
			check(t, p, nil, c.want)
		})
	}
}
