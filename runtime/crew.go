package runtime

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
)

// crew is all ranks of a program. Each rank of this process has a goroutine that waits for commands. The others hold
// what their processes report of them.
type crew struct {
	ranks    []*Rank
	mine     []*Rank      // ranks of this process
	team     *launch.Team // nil: all ranks are in this process
	world    *comm.World
	stores   tensors.Stores // of the ranks
	commands []chan func(*Rank)
	busy     sync.WaitGroup // ranks that are running a command
	alive    sync.WaitGroup // goroutines
}

// newCrew creates the ranks, each with its arena, and starts the goroutines of this process's ranks.
func newCrew(p *Program, timeout time.Duration, team *launch.Team) (*crew, error) {
	mesh := p.mesh()
	c := &crew{world: comm.NewWorld(mesh, timeout), team: team}
	for id := range mesh.Size() {
		r, err := newRank(p, mesh, c.world, id)
		if err != nil {
			return nil, err
		}
		c.ranks = append(c.ranks, r)
	}
	c.mine = c.ranks
	if team != nil {
		c.mine = c.ranks[team.First:][:team.Count]
	}
	c.stores.Team = team
	for _, r := range c.ranks {
		c.stores.All = append(c.stores.All, &r.Store)
	}
	for _, r := range c.mine {
		c.stores.Mine = append(c.stores.Mine, &r.Store)
		ch := make(chan func(*Rank))
		c.commands = append(c.commands, ch)
		c.alive.Go(func() {
			for f := range ch {
				c.command(r, f)
			}
			close(r.jobs)
			if r.Device != nil {
				r.Device.Close()
			}
		})
		c.alive.Go(r.serve)
	}
	return c, nil
}

// isLocal reports whether a rank belongs to this process.
func (c *crew) isLocal(r *Rank) bool { return c.stores.IsLocal(r.ID) }

// do runs f on every rank of this process and waits for all. It returns the error of the first rank that failed, after
// which the crew cannot be used any more.
func (c *crew) do(f func(*Rank)) error {
	if err := c.world.Err(); err != nil {
		return err
	}
	c.busy.Add(len(c.mine))
	for _, ch := range c.commands {
		ch <- f
	}
	c.busy.Wait()
	return c.world.Err()
}

func (c *crew) command(r *Rank, f func(*Rank)) {
	defer c.busy.Done()
	defer func() {
		if x := recover(); x != nil {
			c.world.Fail(rankError(r.ID, x))
		}
	}()
	f(r)
}

// close ends the ranks' goroutines.
func (c *crew) close() {
	for _, ch := range c.commands {
		close(ch)
	}
	c.alive.Wait()
}

// rankError returns the error of a rank's panic: an error that generated code could not return, or a bug.
func rankError(rank int, x any) error {
	if f, ok := x.(failure); ok {
		return f.err
	}
	return fmt.Errorf("rank %d: %v\n%s", rank, x, debug.Stack())
}

func newRank(p *Program, mesh comm.Mesh, world *comm.World, id int) (*Rank, error) {
	r := &Rank{Program: p, Store: tensors.NewStore(&p.ProgramData, mesh, id), world: world, Scale: 1}
	r.scratch = View[float32](r, r.Stage.Arena.Scratch.Offset, r.Stage.Arena.Scratch.Size/F32.Size())
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
	if p.Elem == F64 {
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
	if spec.SharedByEnds && err == nil {
		b.ends, err = r.world.Ends(r.ID, program.StageAxis, comm.Overlap)
	}
	b.countsInNorm = !spec.SharedByEnds || r.Coord[program.StageAxis] == 0
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

// head returns the first rank that has the model's last block.
func (c *crew) head() *Rank {
	for _, r := range c.ranks {
		if chunks := r.exec.chunks; chunks[len(chunks)-1].to == nil {
			return r
		}
	}
	panic("runtime: no rank has the last chunk")
}
