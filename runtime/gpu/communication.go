//go:build cuda && linux

package gpu

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/comm"
)

// communication connects a rank with others: communicators of lines, jobs of buckets, and pipes between
// stages.
type communication struct {
	executor
	commByLine   map[string]*comm.Comm // by line name; nil for a rank without peers
	pipes        map[string]*pipe
	jobs         [][jobKinds]*cuda.Event // by bucket: the event that its waiters wait for
	multiProcess bool                    // other processes have ranks too, which do not meet on this host
}

// split returns the communicator of this rank's part of a line, which all ranks split at once. It returns
// nil if the rank has no peer.
// NCCL allocates buffers for each block of a communicator, so those that exchange single numbers only get one block.
func (d *communication) split(ctx context.Context, m *machine, l rt.Line) (*comm.Comm, error) {
	name, ranks := l.Name, l.Ranks
	if m.shared {
		if len(ranks) < 2 {
			return nil, nil
		}
		c := comm.Share(m.hubs, comm.Launcher{Call: d.call, Constant: d.constant, Failed: d.rank.Done()}, name, ranks,
			d.rank.ID)
		d.atClose(c.Close)
		return c, nil
	}
	if len(d.comms) == 0 {
		return nil, nil
	}
	color, key := cuda.NoColor, 0 // a rank without peers takes part too, because other ranks may share a line
	if len(ranks) > 1 {
		color, key = slices.Min(ranks), slices.Index(ranks, d.rank.ID)
	}
	ctas := m.ctas
	if l.Numbers {
		ctas = 1
	}
	c, err := d.comms[0].Split(ctx, color, key, ctas)
	if err != nil || c == nil {
		return nil, err
	}
	c.Name = fmt.Sprintf("%s of ranks %v", d.label(name), ranks)
	d.comms = append(d.comms, c)
	return &comm.Comm{Rank: c.Rank, Ranks: c.Ranks, NCCL: c}, nil
}

// label returns a line's name for messages: for a group its axes.
func (d *communication) label(name string) string {
	for i, g := range d.rank.Program.Groups {
		if name == rt.MainLine(i) {
			return strings.Join(g.Axes, "·")
		}
	}
	return name
}

// group returns the communicator of one of the program's groups, for the compute stream. It returns nil if
// the rank is the only member.
func (d *communication) group(group int) *comm.Comm {
	if group < 0 {
		return nil
	}
	return d.commByLine[rt.MainLine(group)]
}
