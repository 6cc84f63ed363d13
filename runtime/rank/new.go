package rank

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
)

// New creates a rank with its arena, connected to the others of a world.
func New(p *Program, world *comm.World, id int) (*Rank, error) {
	mesh := p.CommMesh()
	r := &Rank{Program: p, Store: tensors.NewStore(&p.ProgramData, mesh, id), world: world, Pass: Pass{Scale: 1},
		tracks: tracks{world.Track(id, comm.Main), world.Track(id, comm.Overlap)}}
	r.Scratch = tensors.View[float32](&r.Store, r.Stage.Arena.Scratch.Offset,
		r.Stage.Arena.Scratch.Size/program.F32.Size())
	for _, g := range p.Groups {
		joined, err := world.Join(id, g.Axes, comm.Main)
		if err != nil {
			return nil, err
		}
		r.groups = append(r.groups, joined)
	}
	ts := tensors.Of(&p.ProgramData, r.Coord)
	for i := range r.Stage.Buckets {
		b, err := newBucket(r, i, ts)
		if err != nil {
			return nil, err
		}
		r.buckets = append(r.buckets, b)
	}
	if p.Elem == program.F64 {
		r.kinds = jobsOf[float64](p.TensorTypes())
	} else {
		r.kinds = jobsOf[float32](p.TensorTypes())
	}
	r.jobs = make(chan job, kinds*len(r.Stage.Buckets))
	var err error
	r.exec, err = newExecutor(r)
	return r, err
}

func newBucket(r *Rank, at int, ts []tensors.Tensor) (bucket, error) {
	p, spec := r.Program, &r.Stage.Buckets[at]
	b := bucket{Shard: &r.Shards[at]}
	for i := range b.done {
		b.done[i] = make(chan struct{}, 1)
	}
	var err error
	join := func(atoms []string) (g *comm.Group) {
		if err != nil || p.Ranks(atoms) == 1 {
			return nil
		}
		g, err = r.world.Join(r.ID, atoms, comm.Overlap)
		return g
	}
	shard := p.Atoms(spec.Shard)
	rest := p.SumOnly(spec)
	b.reduce, b.shard, b.sum = join(p.Atoms(spec.Reduce)), join(shard), join(rest)
	if spec.TiedStages && err == nil {
		b.firstLast, err = r.world.FirstLast(r.ID, program.StageAxis, comm.Overlap)
	}
	b.countsInNorm = !spec.TiedStages || r.Coord[program.StageAxis] == 0
	copies := slices.Concat(spec.ReplicatedOver, p.Atoms(spec.Reduce), rest) // equal values after the reductions
	for _, a := range program.AtomsNotIn(copies, shard) {
		if r.Coord[a] != 0 {
			b.countsInNorm = false
		}
	}
	b.spans = tensors.Spans(ts, b.Lo, b.Hi)
	if p.StochasticRounding {
		b.tensors = tensors.Overlapping(ts, b.Lo, b.Hi)
	}
	return b, err
}

// PanicError returns the error of a rank's panic: an error that generated code could not return, or a bug.
func PanicError(rank int, x any) error {
	if f, ok := x.(failure); ok {
		return f.err
	}
	return fmt.Errorf("rank %d: %v\n%s", rank, x, debug.Stack())
}
