package engines

import (
	"testing"

	"github.com/planc-dev/planc/costmodel"
)

// Moments of a step are parts of the whole: none needs more than the total, and the last one needs it all.
func TestMomentsArePartsOfTheTotal(t *testing.T) {
	m := costmodel.Memory{Params: 100, Grads: 200, Optimizer: 900, Activations: 5000,
		Workspace: 300, Comm: 70, Overhead: 800}
	for _, p := range costmodel.MemoryParts {
		m.Total += m.Part(p)
	}
	for _, e := range Engines {
		all := e.Moments(m, 600)
		for _, at := range all {
			if at.Bytes > m.Total || at.Bytes < m.Params+m.Grads {
				t.Errorf("%s: %s needs %d of %d", e.Name, at.Name, at.Bytes, m.Total)
			}
		}
		if last := all[len(all)-1]; last.Bytes != m.Total {
			t.Errorf("%s: %s needs %d, want the total %d", e.Name, last.Name, last.Bytes, m.Total)
		}
	}
}

// Without temporaries and unused memory of the allocator, the moments are sums of parts.
func TestMomentsAddUp(t *testing.T) {
	e := &Engine{Name: "plain"}
	m := costmodel.Memory{Params: 100, Grads: 200, Optimizer: 900, Activations: 5000,
		Workspace: 300, Comm: 70, Overhead: 800,
		Total: 7370}
	want := []costmodel.MemoryMoment{{Name: costmodel.FirstPasses, Bytes: 6770},
		{Name: costmodel.OptimizerStep, Bytes: 2070}, {Name: costmodel.LaterPasses, Bytes: 7370}}
	for i, at := range e.Moments(m, 600) {
		if at != want[i] {
			t.Errorf("%+v, want %+v", at, want[i])
		}
	}
}
