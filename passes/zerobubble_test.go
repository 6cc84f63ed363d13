package passes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/program"
)

// pipelinePlan is a plan with the given schedule.
func pipelinePlan(schedule string, pp, vpp, micro int) ir.Plan {
	p := ir.SerialPlan(pp*vpp, 1, ir.FullPrecision(ir.F64))
	p.PP, p.VPP, p.MicroBatches, p.Schedule = pp, vpp, micro, schedule
	p.StageLayers = strings.TrimSuffix(strings.Repeat("1,", pp*vpp), ",")
	return p
}

// timetable is the plan's.
func timetable(plan ir.Plan) *ir.Timetable {
	t := &ir.Timetable{Micro: plan.MicroBatches, Chunks: make([][]int, plan.PP)}
	for c := range plan.PP * plan.VPP {
		s := plan.StageOf(c)
		t.Chunks[s] = append(t.Chunks[s], c)
	}
	for s := range plan.PP {
		t.Do = append(t.Do, orders[plan.Schedule](plan, s))
	}
	return t
}

// mostInFlight is the micro-batches that each stage has in flight at once, all its chunks together.
func mostInFlight(plan ir.Plan, t *ir.Timetable) (inFlight []int) {
	for s := range plan.PP {
		free := ir.Backward
		if plan.Splits() {
			free = ir.WeightGrad
		}
		now, peak := 0, 0
		for _, a := range ir.Actions(t.Do[s]) {
			switch a.Kind {
			case ir.Forward:
				now++
			case free:
				now--
			}
			peak = max(peak, now)
		}
		inFlight = append(inFlight, peak)
	}
	return inFlight
}

func simulate(t *testing.T, plan ir.Plan, chunks []costmodel.ChunkTime) *costmodel.Timeline {
	t.Helper()
	table := timetable(plan)
	line, err := (&costmodel.Pipeline{Timetable: table, Chunks: chunks}).Simulate()
	if err != nil {
		t.Fatalf("%s pp %d m %d: %v", plan.Schedule, plan.PP, plan.MicroBatches, err)
	}
	return line
}

// With F = 1 and B = 2, and W = B where backward is split, the schedules wait as long, and hold as many micro-batches,
// as their authors say (facts of Huang et al. 2019, Narayanan et al. 2021, Qi et al. 2023 and 2024).
func TestStepTables(t *testing.T) {
	for _, c := range []struct {
		schedule string
		vpp      int
		least    func(pp int) int              // micro-batches from which on the figures hold
		bubble   func(pp int) int              // of each stage, in units of a chunk's forward
		inFlight func(pp, m, v, stage int) int // chunks' micro-batches of a stage, -1 where it is not said
	}{
		{"gpipe", 1, func(int) int {
			return 1
		}, func(pp int) int {
			return 3 * (pp - 1)
		}, func(_, m, _, _ int) int {
			return m
		}},
		{"1f1b", 1, func(int) int {
			return 1
		}, func(pp int) int {
			return 3 * (pp - 1)
		}, func(pp, m, _, s int) int {
			return min(pp-s, m)
		}},
		// A chunk's forward is 1/v of a stage's, so the bubble is that of 1F1B over v.
		// It warms up with 2 chunks for each stage behind and a round of pp micro-batches for each chunk but the last.
		{"interleaved", 2, func(pp int) int { return pp }, func(pp int) int { return 3 * (pp - 1) }, warmUpAndOne},
		{"interleaved", 4, func(pp int) int { return pp }, func(pp int) int { return 3 * (pp - 1) }, warmUpAndOne},
		{"zb-h1", 1, func(pp int) int {
			return pp
		}, func(pp int) int {
			return pp - 1
		}, func(pp, _, _, _ int) int {
			return pp
		}},
		// What is left is that stages begin at different times; none waits after that.
		{"zb-v", 2, func(pp int) int {
			return 2*pp - 1
		}, func(pp int) int {
			return pp - 1
		}, func(pp, _, _, _ int) int {
			return 2 * pp
		}},
	} {
		for _, pp := range []int{2, 3, 4, 8} {
			for _, m := range []int{1, 2, pp, pp + 1, 2*pp - 1, 2 * pp, 4 * pp} {
				if m < c.least(pp) || c.schedule == "interleaved" && m%pp != 0 {
					continue
				}
				plan := pipelinePlan(c.schedule, pp, c.vpp, m)
				line := simulate(t, plan, costmodel.UnitTimes(plan))
				inFlight := mostInFlight(plan, timetable(plan))
				for s := range pp {
					if got := int(line.Bubble(s)); got != c.bubble(pp) {
						t.Errorf("%s pp %d vpp %d m %d: stage %d waits %d, want %d", c.schedule, pp, c.vpp, m, s, got,
							c.bubble(pp))
					}
					if c.inFlight != nil && inFlight[s] != c.inFlight(pp, m, c.vpp, s) {
						t.Errorf("%s pp %d m %d: stage %d has %d in flight, want %d", c.schedule, pp, m, s,
							inFlight[s], c.inFlight(pp, m, c.vpp, s))
					}
					if got := int(line.Waits(s)); c.schedule == "zb-v" && got != 0 {
						t.Errorf("zb-v pp %d m %d: stage %d waits %d after it has begun", pp, m, s, got)
					}
				}
			}
		}
	}
}

// warmUpAndOne is what an interleaved stage holds: its warm-up and the chunk that follows, if there is one.
func warmUpAndOne(pp, m, v, stage int) int { return min(m*v, 2*(pp-1-stage)+(v-1)*pp+1) }

// ZB-H1 with other times: its bubble is (pp-1)·(F+B-W) where F ≤ B and W ≤ B, that of 1F1B (pp-1)·(F+B+W).
func TestZeroBubbleOtherTimes(t *testing.T) {
	for _, pp := range []int{2, 4} {
		plan := pipelinePlan("zb-h1", pp, 1, 8*pp)
		chunks := costmodel.UnitTimes(plan)
		for i := range chunks {
			chunks[i] = costmodel.ChunkTime{Forward: 10, Backward: 11, Weights: 9}
		}
		if got, want := simulate(t, plan, chunks).Bubble(pp-1), costmodel.Seconds((pp-1)*12); got != want {
			t.Errorf("pp %d: %v, want %v", pp, got, want)
		}
	}
}

// A send between stages takes its time twice, there and back, per stage, where nothing hides it: one micro-batch.
func TestSendTime(t *testing.T) {
	plan := pipelinePlan("1f1b", 4, 1, 1)
	chunks := costmodel.UnitTimes(plan)
	for i := range chunks {
		chunks[i].SendOutput, chunks[i].SendGradient = 0.5, 0.25
	}
	if got := simulate(t, plan, chunks).End; got != 4*3+3*0.75 {
		t.Errorf("%v", got)
	}
}

// Every schedule of every size plays without a deadlock, and any of them prints and reads back.
func TestSchedulesPlay(t *testing.T) {
	for _, c := range []struct {
		schedule string
		vpp      []int
	}{{"gpipe", []int{1}}, {"1f1b", []int{1}}, {"interleaved", []int{2, 3, 4}}, {"zb-h1", []int{1}},
		{"zb-v", []int{2}}} {
		for pp := 2; pp <= 9; pp++ {
			for m := 1; m <= 3*pp; m++ {
				for _, vpp := range c.vpp {
					if c.schedule == "interleaved" && m%pp != 0 {
						continue
					}
					plan := pipelinePlan(c.schedule, pp, vpp, m)
					table := timetable(plan)
					if err := table.Play(func(ir.Step) {}, func(ir.Step) {}); err != nil {
						t.Errorf("%s pp %d vpp %d m %d: %v", c.schedule, pp, vpp, m, err)
					}
					for s := range table.Do {
						do := ir.Actions(table.Do[s])
						text := program.ScheduleText(do)
						if back, err := program.ParseSchedule(text); err != nil || fmt.Sprint(back) != fmt.Sprint(do) {
							t.Errorf("%s reads back as %v, %v", text, back, err)
						}
					}
				}
			}
		}
	}
}
