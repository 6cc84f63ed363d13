package codegen

import (
	"fmt"
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
)

// The communicators that the cost model counts are those that a rank of each stage opens.
func TestCommunicatorsAreLines(t *testing.T) {
	kinds, messages := map[ir.CommunicatorKind]bool{}, false
	for _, change := range communicatorPlans {
		for _, experts := range []bool{false, true} {
			c := small
			c.Layers = 4
			if experts {
				c.Experts, c.Choices, c.ExpertFFN = 4, 2, 8
			}
			plan := ir.SerialPlan(c.Layers, 2, ir.FullPrecision(ir.BF16))
			plan.AxisOrder = "tp,cp,dp,pp"
			change(&plan)
			if experts && plan.DP > 1 {
				plan.EP = 2
			}
			m := zoo.Build("small", c, zoo.Options{SeqLen: 8, Batch: 1, Elem: ir.BF16})
			p, err := passes.Compile(m, plan, ir.Recipe{Optimizer: "adamw"}, passes.Options{Check: true})
			if err != nil {
				t.Fatalf("%v: %v", plan, err)
			}
			r := &rank.Program{ProgramData: lowered(p)}
			for stage := range p.Stages {
				want, got := linesOf(r, stage), listed(p, stage)
				for _, x := range ir.Communicators(p, stage) {
					kinds[x.Kind], messages = true, messages || x.Messages
				}
				if !slices.Equal(got, want) {
					t.Errorf("%v stage %d: communicators\n%q, lines\n%q", plan, stage, got, want)
				}
			}
		}
	}
	for k := ir.TensorCommunicator; k <= ir.PipeCommunicator; k++ {
		if !kinds[k] {
			t.Errorf("no plan has a communicator of kind %d", k)
		}
	}
	if !messages {
		t.Error("no plan has messages between the members of a group")
	}
}

// lowered returns the tables of a program for GPUs.
func lowered(p *ir.Program) program.Program {
	in := Input{Program: p, Package: "main", Target: GPU}
	_, used := functions(p, in.Target)
	l := lowering{Input: in, parameters: parameters{p}, groups: &used.groups, used: used}
	return l.program()
}

// communicatorPlans change a serial plan.
var communicatorPlans = []func(p *ir.Plan){
	func(p *ir.Plan) {},
	func(p *ir.Plan) { p.DP = 2 },
	func(p *ir.Plan) { p.DP, p.Zero, p.ZeroGroup = 4, 1, 2 },
	func(p *ir.Plan) { p.DP, p.Zero, p.ZeroGroup = 2, 2, 2 },
	func(p *ir.Plan) { p.DP, p.Zero, p.ZeroGroup = 2, 3, 2 },
	func(p *ir.Plan) { p.TP = 2 },
	func(p *ir.Plan) { p.TP, p.SP = 2, true },
	func(p *ir.Plan) { p.TP, p.SP = 4, true },
	func(p *ir.Plan) { p.TP, p.SP, p.DP, p.Zero, p.ZeroGroup = 4, true, 2, 1, 2 },
	func(p *ir.Plan) { p.CP, p.CPKind = 2, "ring" },
	func(p *ir.Plan) { p.CP, p.CPKind, p.DP, p.TP = 2, "gather", 2, 2 },
	func(p *ir.Plan) { p.CP, p.CPKind, p.DP, p.Zero, p.ZeroGroup = 2, "heads", 2, 1, 2 },
	pipelined(2, 1, "1f1b"), pipelined(4, 1, "1f1b"), pipelined(2, 2, "interleaved"), pipelined(2, 2, "zb-v"),
	func(p *ir.Plan) {
		pipelined(2, 1, "zb-h1")(p)
		p.DP, p.TP, p.SP, p.Zero, p.ZeroGroup = 2, 2, true, 2, 2
	},
}

func pipelined(pp, vpp int, schedule string) func(*ir.Plan) {
	return func(p *ir.Plan) {
		p.PP, p.VPP, p.Schedule, p.MicroBatches = pp, vpp, schedule, 4
		p.StageLayers = map[int]string{2: "2,2", 4: "1,1,1,1"}[pp*vpp]
	}
}

// linesOf lists the lines of a rank of a stage that have several members.
func linesOf(p *rank.Program, stage int) (out []string) {
	r := &rank.Rank{Program: p}
	r.ID = stage * p.MeshSize() / len(p.Stages) // pp varies slowest
	r.Coord = map[string]int{"pp": stage}
	for _, l := range r.Lines() {
		if len(l.Ranks) > 1 {
			out = append(out, fmt.Sprint(len(l.Ranks), l.IsPipe, l.Messages, l.Numbers))
		}
	}
	slices.Sort(out)
	return out
}

// listed lists the program's communicators in the same form.
func listed(p *ir.Program, stage int) (out []string) {
	for _, c := range ir.Communicators(p, stage) {
		n := p.Mesh.Ranks(c.Axes)
		if c.Kind >= ir.EndsCommunicator {
			n = 2
		}
		out = append(out, fmt.Sprint(n, c.Kind == ir.PipeCommunicator, c.Messages, c.Kind == ir.NumberCommunicator))
	}
	slices.Sort(out)
	return out
}
