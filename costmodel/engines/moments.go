package engines

import "github.com/planc-dev/planc/costmodel"

// Moments returns what a rank needs at each moment, from what Holds returned and the bytes of the optimizer's moments.
// The last one is the total. planc's own runtime allocates everything at the start.
func (e *Engine) Moments(m costmodel.Memory, moments int64) []costmodel.MemoryMoment {
	if e.Own {
		return []costmodel.MemoryMoment{{Name: costmodel.Start, Bytes: m.Total}}
	}
	temporaries := m.Optimizer - int64(float64(m.Optimizer)/(1+e.ShardGrads))
	slack := int64(e.Slack * float64(m.Activations+m.Workspace))
	return []costmodel.MemoryMoment{
		{Name: costmodel.FirstPasses, Bytes: m.Total - moments - temporaries},
		{Name: costmodel.OptimizerStep, Bytes: m.Total - m.Activations - m.Workspace - slack},
		{Name: costmodel.LaterPasses, Bytes: m.Total},
	}
}
