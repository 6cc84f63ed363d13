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

// A tower is a program of ZeRO 3 on two ranks: four layers with 32 parameters each, two micro-batches, written by hand
// as generated code would be. Its passes compute nothing; they look at what is there.
const (
	towerLayers = 4
	towerElems  = 32 // of a layer; a rank owns half of them
	towerBytes  = towerElems * 8
)

func tower(look func(r *Rank, b *Block, pass string)) *Program {
	at := 0
	next := func(bytes int) program.Region {
		r := program.Region{Offset: at, Size: bytes}
		at += bytes
		return r
	}
	s := program.Stage{Schedule: "(F0 B0)*2 U", Chunks: []program.Chunk{{Runs: []program.LayerRun{{Count: towerLayers}},
		Buffers: 1}}, Gather: towerBytes, Scatter: towerBytes}
	owned := towerLayers * towerBytes / 2
	s.Arena.Params, s.Arena.Grads, s.Arena.Moment1 = next(owned), next(owned), next(owned)
	s.Arena.Comm, s.Arena.Batch = next(2*(s.Gather+s.Scatter)), next(2*64)
	s.Inputs.Mask = s.Arena.Batch.Offset
	s.Arena.Size = at
	p := &Program{ProgramData: ProgramData{Name: "tower",
		Elem:   program.F64,
		Optim:  program.SGD,
		Mesh:   []program.Axis{{Name: "dp", Size: 2}},
		Groups: []program.Group{{Axes: []string{"dp"}}},
		Batch: program.BatchLayout{MicroBatch: 1, MicroBatches: 2, SeqLen: 8, Replicas: 2, ReplicaAxes: []string{"dp"},
			GlobalBatch: 4}},
		Segments: []Segment{{SegmentData: SegmentData{Name: "block",
			Refs: []program.Ref{{Segment: 0, Class: 0}}},
			Forward:  func(r *Rank, b *Block) { look(r, b, "F") },
			Backward: func(r *Rank, b *Block) { look(r, b, "B") },
		}},
	}
	for i := range towerLayers { // in the order of backward
		layer := towerLayers - 1 - i
		s.Buckets = append(s.Buckets, program.Bucket{Offset: i * towerElems, Elems: towerElems,
			State: i * towerElems / 2, Params: i * towerElems / 2, Grads: i * towerElems / 2,
			Reduce: -1, ShardedGrads: true, ShardedParams: true, ReplicatedOver: []string{"dp"},
			Pieces: []program.Piece{{Segment: 0, Layer: layer, Offset: i * towerElems}}})
		p.Params = append(p.Params, program.Param{Name: fmt.Sprint("w", layer), Layers: 1,
			Dims: []program.Dim{{Name: "out", Size: towerElems, Axes: nil}}})
	}
	p.Stages = []program.Stage{s}
	return p
}

// towerRun is what one rank saw in a step.
type towerRun struct {
	t     *testing.T
	rank  *Rank
	looks []string // each pass, the layer, and the layers that are on their way
	jobs  []string // what its communication line did
}

// look wants a layer's own parameters whole, notes what is on its way, and adds to the layer's gradients.
func (u *towerRun) look(r *Rank, b *Block, pass string) {
	for i, x := range tensors.View[float64](&r.Store, b.Params[0], towerElems) {
		if want := float64(10*b.Layer + i/(towerElems/2)); x != want {
			u.t.Errorf("rank %d %s%d: parameter %d is %g, want %g", r.ID, pass, b.Layer, i, x, want)
			break
		}
	}
	line := fmt.Sprint(pass, b.Layer)
	for i := range r.buckets {
		if r.buckets[i].pending[fetching] {
			line += fmt.Sprint(" <", r.Stage.Buckets[i].Pieces[0].Layer)
		}
	}
	if t := &r.exec.fetch; t.users[1-t.current] == nil { // the layer that lay in the other buffer has left it
		for _, x := range tensors.View[float64](&r.Store, t.buffer(1-t.current), towerElems) {
			if !math.IsNaN(x) {
				u.t.Errorf("rank %d %s: there is %g in the buffer that fell free", r.ID, line, x)
				break
			}
		}
		line += " free"
	}
	u.looks = append(u.looks, line)
	if pass == "B" {
		for i, g := 0, tensors.View[float64](&r.Store, b.Grads[0], towerElems); i < towerElems; i++ {
			if g[i] != 0 {
				u.t.Errorf("rank %d %s: a gradient of another micro-batch is left in the buffer", r.ID, line)
			}
			g[i] = float64(b.Layer + 1)
		}
	}
}

// serve is the rank's communication line with a log.
func (u *towerRun) serve() {
	for j := range u.rank.jobs {
		name := map[int]string{fetching: "gather", scattering: "scatter", reducing: "reduce"}[j.kind]
		u.jobs = append(u.jobs, fmt.Sprint(name, " ", u.rank.Stage.Buckets[j.bucket].Pieces[0].Layer))
		if err := u.rank.kinds[j.kind](u.rank, j.bucket); err != nil {
			u.t.Error(err)
		}
		u.rank.buckets[j.bucket].done[j.kind] <- struct{}{}
	}
}

// ZeRO 3 gathers the parameters of the next block before it computes with those of this one, in two buffers in turn,
// frees what a block has left, and gathers nothing that is there: where a pass turns round, at the last layer and
// between micro-batches. Gradients are scattered block by block, and whole in each rank's part.
func TestParametersComeBeforeTheirBlock(t *testing.T) {
	runs := map[*Rank]*towerRun{}
	p := tower(func(r *Rank, b *Block, pass string) { runs[r].look(r, b, pass) })
	world := comm.NewWorld(p.CommMesh(), 0)
	for id := range 2 {
		r, err := New(p, world, id)
		if err != nil {
			t.Fatal(err)
		}
		r.poison = true
		runs[r] = &towerRun{t: t, rank: r}
		for i := range r.buckets {
			for k, x := 0, tensors.View[float64](&r.Store, r.ParamAt(i, r.Shards[i].Lo),
				towerElems/2); k < len(x); k++ {
				x[k] = float64(10*(towerLayers-1-i) + id)
			}
		}
	}
	var all sync.WaitGroup
	for r, u := range runs {
		all.Go(u.serve)
		all.Go(func() { defer close(r.jobs); runStep(r) })
	}
	all.Wait()
	wantLooks := []string{
		"F0 <1", "F1 <2", "F2 <3", "F3 free", "B3 <2", "B2 <1", "B1 <0", "B0 free",
		"F0 <1", "F1 <2", "F2 <3", "F3 free", "B3 <2", "B2 <1", "B1 <0", "B0 free"}
	wantGathers := []string{"gather 0", "gather 1", "gather 2", "gather 3", "gather 2", "gather 1", "gather 0",
		"gather 1", "gather 2", "gather 3", "gather 2", "gather 1", "gather 0"}
	wantScatters := slices.Repeat([]string{"scatter 3", "scatter 2", "scatter 1", "scatter 0"}, 2)
	for r, u := range runs {
		if !slices.Equal(u.looks, wantLooks) {
			t.Errorf("rank %d: passes %q\nwant %q", r.ID, u.looks, wantLooks)
		}
		for kind, want := range map[string][]string{"gather": wantGathers, "scatter": wantScatters} {
			got := slices.DeleteFunc(slices.Clone(u.jobs), func(s string) bool { return s[:len(kind)] != kind })
			if !slices.Equal(got, want) {
				t.Errorf("rank %d: %q, want %q", r.ID, got, want)
			}
		}
		for i := range r.buckets { // two ranks, two micro-batches
			for _, g := range tensors.View[float64](&r.Store, r.GradAt(i, r.Shards[i].Lo), towerElems/2) {
				if want := float64(4 * (towerLayers - i)); g != want {
					t.Fatalf("rank %d bucket %d: gradient %g, want %g", r.ID, i, g, want)
				}
			}
		}
	}
}
