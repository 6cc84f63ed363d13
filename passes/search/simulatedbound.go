package search

import "github.com/planc-dev/planc/costmodel"

// simulatedBoundKey is what the bound of a schedule's passes depends on. Plans that differ in sharding or axis order
// often share it.
type simulatedBoundKey struct {
	frame    *pipelineSplit
	schedule string
	micro    int
	message  costmodel.Seconds
	kinds    [4]chunkBound
}

// simulatedBound returns a second lower bound of a plan's step, which is tighter and more expensive than the closed
// form. It simulates the schedule with lower bounds of its passes and messages, and adds what follows them. Since no
// pass ends earlier if another takes longer, no step is shorter. It is at least the closed form.
func (s *stepBounder) simulatedBound(p *candidate) costmodel.Seconds {
	closed := s.quote(p).time
	f := p.family
	if f.plan.PP == 1 {
		return closed
	}
	fr, message := s.pipelineSplit(f), p.order.messageTime
	if s.problem.PricedEngine().Waits(&f.plan) {
		message = 0
	}
	k := simulatedBoundKey{frame: fr, schedule: f.plan.Schedule, micro: f.plan.MicroBatches, message: message}
	if len(s.boundScratch) > len(k.kinds) {
		return max(closed, s.withPostPass(p, s.passesEnd(f, fr, message)))
	}
	copy(k.kinds[:], s.boundScratch)
	end, known := s.pipelineEnds[k]
	if !known {
		end = s.passesEnd(f, fr, message)
		s.pipelineEnds[k] = end
	}
	return max(closed, s.withPostPass(p, end))
}

// withPostPass returns a step, given when its passes end.
func (s *stepBounder) withPostPass(p *candidate, end costmodel.Seconds) costmodel.Seconds {
	return (end + s.device.StepOverhead() + s.postPassCost(p.family, *p.sharding, p.order).update) * (1 - tie)
}

// passesEnd returns when the passes of a family's schedule end if they take as long as their bounds.
func (s *stepBounder) passesEnd(f *family, fr *pipelineSplit, message costmodel.Seconds) costmodel.Seconds {
	pipeline := costmodel.Pipeline{Timetable: s.timetable(f), Chunks: make([]costmodel.ChunkTime, len(fr.kindOf))}
	for c, kind := range fr.kindOf {
		k, to := &s.boundScratch[kind], &pipeline.Chunks[c]
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
