package price

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// If a part of tensor parallel collectives overlaps matmuls, compute waits for less of those, but not for less of
// what goes over cp and ep. The simulation of a ring already subtracts what overlaps attention, and tokens sent to
// experts have no matmul to overlap. This holds for functions with and without overlapping messages.
func TestHiddenPartIsOfTensorParallelism(t *testing.T) {
	cfg := llamaConfig(2, 1024, 16, 16, 4096, 1024, 4096)
	cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN, cfg.RouteShare = spec.Mixtral, 4, 2, 2048, true
	p := problem(cluster(t, "dgx-h100", 2, 0), cfg, 4096, 16, mixed)
	for _, kind := range []string{"ring", "gather"} {
		plan := ir.SerialPlan(2, 1, mixed)
		plan.DP, plan.TP, plan.CP, plan.CPKind, plan.SP, plan.EP, plan.ETP, plan.MoESlack, plan.AxisOrder = 4, 2, 2,
			kind, true, 4, 2, 2, "tp,cp,dp"
		price := func(exposed float64) []costmodel.Cost {
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			s.exposedTP = exposed
			k := keyOf(plan)
			p := s.profile(k)
			block := s.layerCosts(nil, s.routeSetAt(&plan, p), &k, p, 1)[1]
			return []costmodel.Cost{block.forward, block.backward}
		}
		whole, half := price(1), price(0.5)
		for i, w := range whole {
			h := half[i]
			tp := func(c costmodel.Cost) float64 { return float64(c.Comm - c.Context - c.Experts) }
			if w.Context == 0 || w.Experts == 0 || tp(w) <= 0 {
				t.Fatalf("%s: %+v has not all kinds of collectives", kind, w)
			}
			if h.Context != w.Context || h.Experts != w.Experts || math.Abs(tp(h)/tp(w)-0.5) > 1e-9 {
				t.Errorf("%s: with half of tp hidden %+v, with none %+v", kind, h, w)
			}
		}
	}
}

// Compute of another engine's function waits for blocking collectives over cp, and for the part of a ring that
// attention does not hide, in any order.
func TestOverlappedRingAddsToContext(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 2, 0), llamaConfig(2, 1024, 16, 16, 4096, 1024, 4096), 4096, 16, mixed)
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	plan := ir.SerialPlan(2, 1, mixed)
	plan.DP, plan.CP, plan.CPKind, plan.AxisOrder = 8, 2, "ring", "cp,dp"
	over := func(overlapped bool) linearComm {
		return linearComm{collective: ir.Collective{Op: ir.OpAllGather, Axes: []ir.Axis{"cp"}, Bytes: 1 << 30},
			overlapped: overlapped}
	}
	context := func(lines ...linearComm) costmodel.Seconds {
		prof := &profile{segs: []segmentProfile{{forward: funcProfile{comms: lines}}}}
		prof.classifyComms()
		return s.functionCost(&prof.segs[0].forward, &computeTime{}, 1, moeLoad{},
			s.routeSetFor(prof, &lazyMesh{plan: &plan}).routes).Context
	}
	line, ring := context(over(false)), context(over(true))
	if line <= 0 || ring <= 0 {
		t.Fatalf("%v in line, %v beside attention that takes no time", line, ring)
	}
	if a, b := context(over(false), over(true)), context(over(true), over(false)); a != line+ring || b != line+ring {
		t.Errorf("%v and %v together, %v and %v alone", a, b, line, ring)
	}
}
