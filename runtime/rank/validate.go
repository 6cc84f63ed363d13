package rank

import (
	"errors"
	"fmt"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
)

// Validate returns an error for each contradiction in the program's tables, which is a bug of the compiler.
func (p *Program) Validate() (err error) {
	bad := func(format string, args ...any) {
		err = errors.Join(err, fmt.Errorf("runtime: the program is wrong: "+format, args...))
	}
	for i := range p.Stages {
		p.validateStage(&p.Stages[i], bad)
	}
	if b := p.Batch; b.GlobalBatch != b.MicroBatch*b.MicroBatches*b.Replicas {
		bad("global batch %d is not %d × %d × %d", b.GlobalBatch, b.MicroBatch, b.MicroBatches, b.Replicas)
	}
	if t := p.TensorTypes(); p.StochasticRounding && (t.Params != program.BF16 || t.Master != program.BF16) {
		bad("parameters cannot be rounded stochastically to %v with a master copy in %v", t.Params, t.Master)
	}
	if n := p.Ranks(p.Batch.ReplicaAxes); n != p.Batch.Replicas {
		bad("%v make %d replicas, not %d", p.Batch.ReplicaAxes, n, p.Batch.Replicas)
	}
	if n := p.Ranks(p.Batch.SeqAxes); p.Batch.SeqLen%max(n, 2*p.Batch.Zigzag) != 0 {
		bad("%v do not divide %d positions into %d parts (zigzag %d)", p.Batch.SeqAxes, p.Batch.SeqLen, n,
			p.Batch.Zigzag)
	}
	p.validatePlaces(bad)
	return err
}

// validateStage reports contradictions in a stage's tables.
func (p *Program) validateStage(s *program.Stage, bad func(string, ...any)) {
	types := p.TensorTypes()
	for _, c := range s.Chunks {
		for i := range c.Runs {
			seg := &p.Segments[c.Runs[i].Segment]
			if f, b, _ := seg.functions(&c.Runs[i]); f == nil || b == nil {
				bad("segment %s lacks a function that chunk %d runs", seg.Name, c.Index)
			}
		}
	}
	for i, b := range s.Buckets {
		n := p.Ranks(p.Atoms(b.Shard))
		if b.Elems%n != 0 {
			bad("bucket %d has %d elements, which %d shards do not divide", i, b.Elems, n)
		}
		params, grads := b.Elems, b.Elems
		if b.ShardedParams {
			params /= n
		}
		if b.ShardedGrads {
			grads /= n
		}
		if (b.Params+params)*types.Params.Size() > s.Arena.Params.Size ||
			(b.Grads+grads)*types.Grads.Size() > s.Arena.Grads.Size {
			bad("bucket %d ends after its regions", i)
		}
		if end := (b.State + b.Elems/n) * types.Master.Size(); p.HasMaster() && end > s.Arena.Master.Size {
			bad("the master copy of bucket %d ends at byte %d, after its region", i, end)
		}
		if end := (b.State + b.Elems/n) * types.Moments.Size(); p.HasMoments() && end > s.Arena.Moment1.Size ||
			p.Optim != program.SGD && end > s.Arena.Moment2.Size {
			bad("the state of bucket %d ends at byte %d, after its regions", i, end)
		}
	}
	for name, r := range s.Arena.Regions() {
		if end := r.Offset + r.Size; end > s.Arena.Size {
			bad("region %s ends at byte %d, the arena at %d", name, end, s.Arena.Size)
		}
	}
	if _, err := program.ParseSchedule(s.Schedule); err != nil {
		bad("%v", err)
	}
}

// validatePlaces checks that each tensor is on some stage.
func (p *Program) validatePlaces(bad func(string, ...any)) {
	found := map[string]bool{}
	for i := range p.Stages {
		for _, t := range tensors.Of(&p.ProgramData, map[string]int{program.StageAxis: i}) {
			found[t.Name] = found[t.Name] || t.Offset >= 0
		}
	}
	for name, ok := range found {
		if !ok {
			bad("parameter %s lies in no bucket", name)
		}
	}
}

// CommMesh returns the mesh as package comm has it.
func (p *Program) CommMesh() comm.Mesh {
	m := make(comm.Mesh, len(p.Mesh))
	for i, a := range p.Mesh {
		m[i] = comm.Axis(a)
	}
	return m
}
