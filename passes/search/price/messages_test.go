package price

import (
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// On GPUs messages are transferred concurrently with passes, and a pass copies its message from the receive buffer, or
// from the stage's own memory. On a CPU a pass copies its message from another stage's memory. Chunks 1 and 2 of zb-v
// are on one stage.
func TestMessagesOfPasses(t *testing.T) {
	type messages struct{ output, grad, copyInput, copyGrad costmodel.Seconds }
	for _, name := range []string{"dgx-h100", "cpu"} {
		p := problem(cluster(t, name, 1, 2), gpt2Config(4, 64, 4, 64, 16), 16, 16, ir.FullPrecision(ir.F32))
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		plan := ir.SerialPlan(4, 4, ir.FullPrecision(ir.F32))
		plan.PP, plan.VPP, plan.Schedule, plan.StageLayers, plan.MicroBatches = 2, 2, "zb-v", "1,1,1,1", 4
		plan.AxisOrder = "tp,dp,pp"
		if broken := space.Legal(plan, space.DimsOf(p.Model), p.Cluster, 16); len(broken) > 0 {
			t.Fatalf("%v", broken)
		}
		tables := s.tables(plan)
		stream := costmodel.Bytes(tables.Stream)
		sent, copied := s.problem.Cluster.SendTime(tables.Mesh, "pp", stream), s.device.StreamTime(2*stream)
		want := [][2]messages{ // chunks 0 and 3, 1 and 2
			{{sent, 0, 0, copied}, {0, sent, copied, 0}},
			{{0, sent, copied, copied}, {sent, 0, copied, copied}},
		}
		if p.Cluster.IsCPU() {
			want = [][2]messages{{{copyGrad: sent}, {copyInput: sent}}, {{copyInput: sent}, {copyGrad: sent}}}
		}
		for _, step := range []*costmodel.Step{s.step(tables), s.stepOf(CandidateOf(plan))} {
			if step.Preposted != !p.Cluster.IsCPU() {
				t.Errorf("%s: preposted is %v", name, step.Preposted)
			}
			for i := range step.Stages {
				for j, c := range step.Stages[i].Chunks {
					if got := (messages{c.Output, c.Grad, c.CopyInput, c.CopyGrad}); got != want[i][j] {
						t.Errorf("%s: chunk %d of stage %d has %+v, want %+v", name, j, i, got, want[i][j])
					}
				}
			}
		}
	}
}
