package costmodel

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// warmTurns are so many forward passes, a forward and a backward in turn, and the backward passes that are left.
func warmTurns(warm, micro int) []ir.Turn {
	f, b := ir.Action{Kind: ir.Forward}, ir.Action{Kind: ir.Backward}
	warm = min(micro, warm)
	return []ir.Turn{{Actions: []ir.Action{f}, Times: warm}, {Actions: []ir.Action{f, b}, Times: micro - warm},
		{Actions: []ir.Action{b}, Times: warm},
		{Actions: []ir.Action{{Kind: ir.Finish}}, Times: 1}}
}

// A step with skipped rounds has bitwise the same parts as the step in which all actions are run, including reductions
// that overlap the last passes.
func TestSteadyStep(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for range 100 {
		s, _ := randomStep(r)
		micro, gpipe := 1+r.IntN(3000), r.IntN(2) == 0
		s.Timetable.Micro, s.Preposted = micro, r.IntN(2) == 0
		walked := *s
		walked.Timetable = &ir.Timetable{Micro: micro, Chunks: s.Timetable.Chunks}
		for i := range s.Timetable.Do {
			warm := len(s.Stages) - 1 - i // 1F1B
			if gpipe {
				warm = micro
			}
			s.Timetable.Do[i] = warmTurns(warm, micro)
			walked.Timetable.Do = append(walked.Timetable.Do,
				[]ir.Turn{{Actions: ir.Actions(s.Timetable.Do[i]), Times: 1}})
		}
		if got, want := s.Simulate(), walked.Simulate(); got != want {
			t.Errorf("%d stages, %d micro-batches: %+v, walked %+v", len(s.Stages), micro, got, want)
		}
		if got, want := s.passed(), walked.passed(); got.play(true) != want.play(true) ||
			!reflect.DeepEqual(got.last, want.last) || !reflect.DeepEqual(got.ends, want.ends) {
			t.Errorf("%d stages, %d micro-batches: %v and %v, walked %v and %v", len(s.Stages), micro, got.ends,
				got.last, want.ends, want.last)
		}
	}
}

// A stage that is slower than the one before it by ten in a million falls behind for tens of thousands of
// micro-batches, until all that may lie between them does. Rounds before that are skipped and rounds after it, but not
// those at the turn.
func TestDriftIsSkipped(t *testing.T) {
	const micro = 100_000
	p := &Pipeline{Timetable: &ir.Timetable{Micro: micro}, Chunks: make([]ChunkTime, 4)}
	for i := range p.Chunks {
		p.Chunks[i] = ChunkTime{Forward: 1, Backward: 2, SendOutput: 0.3, SendGradient: 0.3}
		p.Timetable.Chunks = append(p.Timetable.Chunks, []int{i})
		p.Timetable.Do = append(p.Timetable.Do, warmTurns(len(p.Chunks)-1-i, micro))
	}
	p.Chunks[2].Forward += 1e-5
	line, err := p.Simulate()
	if err != nil {
		t.Fatal(err)
	}
	s := newSimulation(p)
	if err := s.fold(); err != nil || s.end() != line.End {
		t.Errorf("%v, walked %v, %v", s.end(), line.End, err)
	}
	if s.steady.skipped < micro*99/100 {
		t.Errorf("only %d turns are skipped", s.steady.skipped)
	}
}
