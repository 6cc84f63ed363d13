package passes

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// foldedPlans are plans of all schedules with several chunks, of so many micro-batches or up to a turn more.
func foldedPlans(r *rand.Rand, micro int) (out []ir.Plan) {
	pp := 2 + r.IntN(7)
	for _, s := range []struct {
		name string
		vpp  int
	}{{"gpipe", 1}, {"1f1b", 1}, {"zb-h1", 1}, {"zb-v", 2}, {"interleaved", 2 + r.IntN(3)}} {
		m := micro + r.IntN(pp)
		if s.name == "interleaved" {
			m = (micro/pp + 1) * pp
		}
		out = append(out, pipelinePlan(s.name, pp, s.vpp, m))
	}
	return out
}

// randomTimes are chunks' times of one of the kinds that steps have: all alike, a last one that is slower by little,
// any.
func randomTimes(r *rand.Rand, plan ir.Plan) []costmodel.ChunkTime {
	out := make([]costmodel.ChunkTime, plan.PP*plan.VPP)
	seconds := func() costmodel.Seconds { return costmodel.Seconds(r.Float64()) }
	kind, send := r.IntN(4), seconds()*costmodel.Seconds(r.IntN(3))
	like := costmodel.ChunkTime{Forward: seconds(), Backward: 2 * seconds()}
	if plan.Splits() {
		like.Weights = seconds()
	}
	for i := range out {
		out[i] = like
		switch {
		case kind == 1 && i == len(out)-1:
			out[i].Forward *= 1 + seconds()/1000
		case kind == 2:
			out[i].Forward, out[i].Backward, out[i].Weights = seconds(), seconds(), like.Weights*seconds()
		case kind == 3:
			out[i].Backward *= 1 + seconds()/100
		}
		out[i].SendOutput, out[i].SendGradient = send, send
	}
	return out
}

// The end of a schedule whose rounds are skipped is that of the schedule when all of its passes are gone through, to
// the bit.
func TestFoldedIsWalked(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for range 200 {
		for _, plan := range foldedPlans(r, 1+r.IntN(1500)) {
			table := timetable(plan)
			p := &costmodel.Pipeline{Timetable: table, Chunks: randomTimes(r, plan), Preposted: r.IntN(2) == 0}
			line, err := p.Simulate()
			if err != nil {
				t.Fatal(err)
			}
			if end, err := p.Passed(); err != nil || end != line.End {
				t.Errorf("%s pp %d vpp %d, %d micro-batches: %v, walked %v, %v", plan.Schedule, plan.PP, plan.VPP,
					plan.MicroBatches, end, line.End, err)
			}
		}
	}
}

// A step of 2^40 micro-batches is simulated as fast as one of a hundred: it would never end else.
func TestManyMicroBatches(t *testing.T) {
	const micro = 1 << 40
	for _, plan := range foldedPlans(rand.New(rand.NewPCG(23, 24)), micro) {
		table := timetable(plan)
		chunks := costmodel.UnitTimes(plan)
		end, err := (&costmodel.Pipeline{Timetable: table, Chunks: chunks}).Passed()
		least := costmodel.Seconds(3 * plan.VPP * plan.MicroBatches)
		if latest := least + costmodel.Seconds(3*3*len(chunks)); err != nil || end < least || end > latest {
			t.Errorf("%s pp %d vpp %d: %v, %v", plan.Schedule, plan.PP, plan.VPP, end, err)
		}
	}
}

// BenchmarkPassed simulates a million micro-batches over 8 stages.
func BenchmarkPassed(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range []string{"gpipe", "1f1b", "zb-h1", "interleaved", "zb-v"} {
		vpp := map[string]int{"interleaved": 4, "zb-v": 2}[s]
		plan := pipelinePlan(s, 8, max(1, vpp), 1_000_000)
		table := timetable(plan)
		p := &costmodel.Pipeline{Timetable: table, Chunks: randomTimes(r, plan)}
		b.Run(fmt.Sprint(s), func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Passed(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
