package driver

import (
	"sync"
	"time"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/tensors"
)

// crew is all ranks of a program. Each rank of this process has a goroutine that waits for commands. The others hold
// what their processes report of them.
type crew struct {
	ranks    []*rank.Rank
	mine     []*rank.Rank // ranks of this process
	team     *launch.Team // nil: all ranks are in this process
	world    *comm.World
	stores   tensors.Stores // of the ranks
	commands []chan func(*rank.Rank)
	busy     sync.WaitGroup // ranks that are running a command
	alive    sync.WaitGroup // goroutines
}

// newCrew creates the ranks, each with its arena, and starts the goroutines of this process's ranks.
func newCrew(p *rank.Program, timeout time.Duration, team *launch.Team) (*crew, error) {
	mesh := p.CommMesh()
	c := &crew{world: comm.NewWorld(mesh, timeout), team: team}
	for id := range mesh.Size() {
		r, err := rank.New(p, c.world, id)
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
		ch := make(chan func(*rank.Rank))
		c.commands = append(c.commands, ch)
		c.alive.Go(func() {
			for f := range ch {
				c.command(r, f)
			}
			r.CloseJobs()
			if r.Device != nil {
				r.Device.Close()
			}
		})
		c.alive.Go(r.Serve)
	}
	return c, nil
}

// isLocal reports whether a rank belongs to this process.
func (c *crew) isLocal(r *rank.Rank) bool { return c.stores.IsLocal(r.ID) }

// do runs f on every rank of this process and waits for all. It returns the error of the first rank that failed, after
// which the crew cannot be used any more.
func (c *crew) do(f func(*rank.Rank)) error {
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

func (c *crew) command(r *rank.Rank, f func(*rank.Rank)) {
	defer c.busy.Done()
	defer func() {
		if x := recover(); x != nil {
			c.world.Fail(rank.PanicError(r.ID, x))
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

// head returns the first rank that has the model's last block.
func (c *crew) head() *rank.Rank {
	for _, r := range c.ranks {
		if r.HasHead() {
			return r
		}
	}
	panic("runtime: no rank has the last chunk")
}

// openDevices opens the device of each rank.
func (c *crew) openDevices(from rank.Devices) error {
	if from == nil {
		return nil
	}
	return c.do(func(r *rank.Rank) {
		var err error
		r.Device, err = from.Take(r)
		rank.Check(err)
	})
}

// push copies the ranks' state to their devices.
func (c *crew) push() error {
	if c.mine[0].Device == nil {
		return nil
	}
	return c.do(func(r *rank.Rank) {
		for _, g := range r.Stage.Arena.StateRegions() {
			r.Device.Upload(g.Offset, g.Size)
		}
	})
}

// pull copies the ranks' state, and the regions that more selects, back to the host.
func (c *crew) pull(more ...func(*program.Arena) program.Region) error {
	if c.mine[0].Device == nil {
		return nil
	}
	return c.do(func(r *rank.Rank) {
		regions := r.Stage.Arena.StateRegions()
		for _, f := range more {
			regions = append(regions, f(&r.Stage.Arena))
		}
		for _, g := range regions {
			r.Device.Download(g.Offset, g.Size)
		}
	})
}

// finishUpdates finishes the updates of all ranks of this process. It must be called before parameters or optimizer
// state are read between steps.
func (c *crew) finishUpdates() error {
	for _, r := range c.mine {
		if r.HasUpdates() {
			return c.do((*rank.Rank).FinishUpdates)
		}
	}
	return nil
}

// waitUpdates waits until no update is running, even if a rank has failed.
func (c *crew) waitUpdates() {
	for _, r := range c.mine {
		r.WaitUpdates()
	}
}

// threadsEach returns the number of threads of each rank. Together the ranks use at most the process's processors,
// unless there are fewer processors than ranks. --threads N sets the number of processors so that each rank gets N.
func threadsEach(processors, ranks int) int { return max(1, processors/ranks) }
