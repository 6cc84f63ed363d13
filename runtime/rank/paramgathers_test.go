package rank

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
)

// wholeTower is a tower whose ranks have all parameters and gradients, and a part of the optimizer state: ZeRO 1.
func wholeTower(look func(r *Rank, b *Block, pass string)) *Program {
	p := tower(look)
	s := &p.Stages[0]
	s.Gather, s.Scatter = 0, 0
	for i := range s.Buckets {
		b := &s.Buckets[i]
		b.ShardedParams, b.ShardedGrads, b.Params, b.Grads = false, false, b.Offset, b.Offset
	}
	at := 0
	for _, g := range []struct {
		region *program.Region
		size   int
	}{{&s.Arena.Params, towerLayers * towerBytes}, {&s.Arena.Grads, towerLayers * towerBytes},
		{&s.Arena.Moment1, towerLayers * towerBytes / 2}, {&s.Arena.Comm, 0}, {&s.Arena.Batch, 2 * 64}} {
		*g.region = program.Region{Offset: at, Size: g.size}
		at += g.size
	}
	s.Inputs.Mask, s.Arena.Size = s.Arena.Batch.Offset, at
	return p
}

// gatheredLook wants a layer's parameters whole, and returns the layers whose parameters are being gathered.
func gatheredLook(t *testing.T, r *Rank, b *Block, pass string) string {
	for i, x := range tensors.View[float64](&r.Store, b.Params[0], towerElems) {
		if want := float64(10*b.Layer + i/(towerElems/2)); x != want {
			t.Errorf("rank %d step %d %s%d: parameter %d is %g, want %g", r.ID, r.StepID, pass, b.Layer, i, x, want)
			break
		}
	}
	line := fmt.Sprint(pass, b.Layer)
	for layer := range towerLayers {
		if r.buckets[towerLayers-1-layer].pending[gathering] {
			line += fmt.Sprint(" <", layer)
		}
	}
	return line
}

// With ZeRO 1, the parameters that other ranks have updated are gathered when the next step begins, and each layer
// waits for its own only. Between steps they are gathered on request, and not again in the next step.
func TestUpdatedParametersAreGatheredDuringTheNextStep(t *testing.T) {
	looks := map[*Rank]*[]string{}
	p := wholeTower(func(r *Rank, b *Block, pass string) {
		*looks[r] = append(*looks[r], gatheredLook(t, r, b, pass))
	})
	world := comm.NewWorld(p.CommMesh(), 0)
	for id := range 2 {
		r, err := New(p, world, id)
		if err != nil {
			t.Fatal(err)
		}
		r.poison = true
		looks[r] = new([]string)
		for layer := range towerLayers {
			whole := tensors.View[float64](&r.Store, r.ParamAt(towerLayers-1-layer, (towerLayers-1-layer)*towerElems),
				towerElems)
			for k := range whole {
				whole[k] = float64(10*layer + k/(towerElems/2))
			}
		}
	}
	var all sync.WaitGroup
	for r := range looks {
		all.Go(r.Serve)
		all.Go(func() {
			defer close(r.jobs)
			for r.StepID = 1; r.StepID <= 3; r.StepID++ {
				runStep(r)
				others := r.ParamAt(0, (1-r.ID)*towerElems/2)
				if x := tensors.View[float64](&r.Store, others, 1)[0]; !math.IsNaN(x) || !r.HasUpdates() {
					t.Errorf("rank %d: after step %d, another rank's parameter is %g", r.ID, r.StepID, x)
				}
				if r.StepID == 2 {
					r.FinishUpdates()
				}
			}
		})
	}
	all.Wait()
	passes := []string{"F0", "F1", "F2", "F3", "B3", "B2", "B1", "B0"}
	want := slices.Concat(passes, passes, []string{"F0 <1 <2 <3", "F1 <2 <3", "F2 <3"}, passes[3:], passes, passes,
		passes)
	for r, got := range looks {
		if !slices.Equal(*got, want) {
			t.Errorf("rank %d: %q\nwant %q", r.ID, *got, want)
		}
	}
}
