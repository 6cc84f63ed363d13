package search

import "github.com/planc-dev/planc/costmodel"

// pipelinedKey is what the passes of a schedule take at least: plans that shard or order their axes differently often
// share it.
type pipelinedKey struct {
	frame    *frame
	schedule string
	micro    int
	message  costmodel.Seconds
	kinds    [4]kindFloor
}

// pipelined is a second bound of a plan's step, dearer and closer than the closed form: its schedule is played with
// passes and messages that take no longer than theirs do, and what comes after them is added. Since no pass ends
// earlier where another takes longer, no step is shorter. It is at least the closed form.
func (s *searcher) pipelined(p *point) costmodel.Seconds {
	closed := s.quote(p).time
	f := p.family
	if f.plan.PP == 1 {
		return closed
	}
	fr, message := s.frame(f), p.order.message
	if s.problem.engine().Waits(&f.plan) {
		message = 0
	}
	k := pipelinedKey{frame: fr, schedule: f.plan.Schedule, micro: f.plan.MicroBatches, message: message}
	if len(s.kindFloors) > len(k.kinds) {
		return max(closed, s.after(p, s.played(f, fr, message)))
	}
	copy(k.kinds[:], s.kindFloors)
	end, known := s.plays[k]
	if !known {
		end = s.played(f, fr, message)
		s.plays[k] = end
	}
	return max(closed, s.after(p, end))
}

// after is a step whose passes have ended.
func (s *searcher) after(p *point, end costmodel.Seconds) costmodel.Seconds {
	return (end + s.device.StepOverhead() + s.endingOf(p.family, *p.of, p.order).update) * (1 - tie)
}

// played is when the passes of a family's schedule end that take as long as their kinds' floors.
func (s *searcher) played(f *family, fr *frame, message costmodel.Seconds) costmodel.Seconds {
	pipeline := costmodel.Pipeline{Timetable: s.timetable(f), Chunks: make([]costmodel.ChunkTime, len(fr.kindOf))}
	for c, kind := range fr.kindOf {
		k, to := &s.kindFloors[kind], &pipeline.Chunks[c]
		to.Forward, to.Backward, to.Weights = k.forward, k.backward, k.weights
		if c+1 < len(fr.kindOf) && f.plan.StageOf(c+1) != f.plan.StageOf(c) {
			to.SendOutput = message
		}
		if c > 0 && f.plan.StageOf(c-1) != f.plan.StageOf(c) {
			to.SendGradient = message
		}
	}
	end, err := pipeline.Passed()
	if err != nil {
		panic("search: a schedule of a legal plan: " + err.Error())
	}
	return end
}
