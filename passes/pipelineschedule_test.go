package passes

import (
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// Buffers of schedules without chunks, which have a closed form, are those that their passes take.
func TestInFlight(t *testing.T) {
	for _, name := range []string{"none", "gpipe", "1f1b"} {
		for pp := 1; pp < 6; pp++ {
			for micro := 1; micro < 8; micro++ {
				plan := ir.Plan{PP: pp, VPP: 1, MicroBatches: micro, Schedule: name}
				for stage := range pp {
					if got, want := InFlight(plan, stage),
						ir.InFlight([]ir.Turn{{Actions: Schedule(plan, stage), Times: 1}}, 1)[0]; len(got) != 1 ||
						got[0] != want {
						t.Errorf("%s, stage %d of %d, %d micro-batches: %v, want %d", name, stage, pp, micro, got, want)
					}
				}
			}
		}
	}
}

// Buffers that are counted by turns, in the first time and the last of each, are those of the passes written out.
func TestInFlightByTurns(t *testing.T) {
	for _, c := range []struct {
		schedule string
		vpp      []int
	}{{"1f1b", []int{1}}, {"gpipe", []int{1}}, {"interleaved", []int{2, 3, 5}}, {"zb-h1", []int{1}},
		{"zb-v", []int{2}}} {
		for pp := 2; pp <= 6; pp++ {
			for m := 1; m <= 7*pp; m++ {
				for _, vpp := range c.vpp {
					if c.schedule == "interleaved" && m%pp != 0 {
						continue
					}
					plan := pipelinePlan(c.schedule, pp, vpp, m)
					for stage := range pp {
						one := []ir.Turn{{Actions: Schedule(plan, stage), Times: 1}}
						if got, want := ir.InFlight(Turns(plan, stage), vpp),
							ir.InFlight(one, vpp); !slices.Equal(got, want) {
							t.Errorf("%s, stage %d of %d, vpp %d, %d micro-batches: %v, want %v", c.schedule, stage,
								pp, vpp, m, got, want)
						}
					}
				}
			}
		}
	}
}

// Generated GEMMs write gradients at micro-batch 0 and add to them at the others (codegen/written.go). That takes
// that of each pass of a chunk, the second part of a split backward too, micro-batch 0 comes first, and that each has
// all of them once. Where both ends of the model are on one stage and share a parameter, the head's first backward
// comes before any of the embedding's.
func TestMicroBatchZeroComesFirst(t *testing.T) {
	for _, c := range []struct {
		schedule string
		vpp      []int
	}{{"none", []int{1}}, {"gpipe", []int{1}}, {"1f1b", []int{1}}, {"interleaved", []int{2, 3}}, {"zb-h1", []int{1}},
		{"zb-v", []int{2}}} {
		for pp := 1; pp <= 5; pp++ {
			for m := 1; m <= 3*pp; m++ {
				for _, vpp := range c.vpp {
					if (pp == 1) == (c.schedule == "none") && (c.schedule != "interleaved" || m%pp == 0) {
						checkOrder(t, pipelinePlan(c.schedule, pp, vpp, m))
					}
				}
			}
		}
	}
}

// checkOrder plays a plan's schedule and checks the micro-batches of each pass, in the order of time.
func checkOrder(t *testing.T, plan ir.Plan) {
	t.Helper()
	passes := map[ir.ActionKind][][]int{}
	kinds := []ir.ActionKind{ir.Forward, ir.Backward}
	if plan.Splits() {
		kinds = append(kinds, ir.WeightGrad)
	}
	chunks := plan.PP * plan.VPP
	for _, k := range kinds {
		passes[k] = make([][]int, chunks)
	}
	table := timetable(plan)
	err := table.Play(func(s ir.Step) {
		if s.Kind == ir.Backward && s.ModelChunk == 0 && len(passes[s.Kind][chunks-1]) == 0 && chunks > 1 {
			t.Errorf("%v: the first chunk's backward of micro-batch %d begins before any of the last's", plan, s.Micro)
		}
		passes[s.Kind][s.ModelChunk] = append(passes[s.Kind][s.ModelChunk], s.Micro)
	}, func(ir.Step) {})
	if err != nil {
		t.Fatalf("%v: %v", plan, err)
	}
	for _, k := range kinds {
		for chunk, order := range passes[k] {
			for i, micro := range order {
				if micro != i {
					t.Fatalf("%v: %c of chunk %d runs micro-batches %v", plan, k, chunk, order)
				}
			}
			if len(order) != plan.MicroBatches {
				t.Errorf("%v: %c of chunk %d runs %d micro-batches of %d", plan, k, chunk, len(order),
					plan.MicroBatches)
			}
		}
	}
}
