//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/comm"
	"github.com/planc-dev/planc/runtime/num"
)

// AllToAll gathers the dim that was split over a group and splits another one. It is the GPU version of rt.AllToAll.
func AllToAll[T num.Stored](r *rt.Rank, group int, y, x Buf[T], t rt.AllToAllShape) {
	d := deviceOf(r)
	c := d.group(group)
	if c == nil {
		Copy(r, y, x)
		return
	}
	// Each pair is {rows, columns of one rank}: from for the dim to be split, to for the dim to be gathered.
	from, to := [2]int{t.Outer * t.First * t.Middle, t.Second * t.Inner},
		[2]int{t.Outer, t.First * t.Middle * t.Second * t.Inner}
	if t.Back {
		from, to = to, from
	}
	n := c.Ranks
	room := d.scratchParts(x.N*size[T](), x.N*size[T]())
	d.pack(suffix[T](), room[0], addr(d, x), from[0], 0, n, from[1], n*from[1], 0)
	d.exchange(c, room[1], room[0], x.N/n, size[T](), wireType[T]())
	d.unpack(suffix[T](), addr(d, y), room[1], to[0], n, to[1], n*to[1], 0)
}

// exchange sends part i of from to member i, and receives part i of to from it. A part has n elements of size bytes.
func (d *communication) exchange(c *comm.Comm, to, from cuda.Pointer, n, size int, t cuda.Type) {
	rt.Check(c.Group(d.stream(), func() error {
		for i := range c.Ranks {
			part := pointer(i * n * size)
			if err := c.Send(d.stream(), from+part, n, t, i); err != nil {
				return err
			}
			if err := c.Receive(d.stream(), to+part, n, t, i); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Shift sets y to the x of the member that is by positions before this one: a cyclic shift, the GPU version of
// rt.Shift.
func Shift[T num.Stored](r *rt.Rank, group int, y, x Buf[T], by int) {
	d := deviceOf(r)
	c := d.group(group)
	if c == nil || by%c.Ranks == 0 {
		Copy(r, y, x)
		return
	}
	by = (by%c.Ranks + c.Ranks) % c.Ranks
	rt.Check(c.Group(d.stream(), func() error {
		if err := c.Send(d.stream(), addr(d, x), x.N, wireType[T](), (c.Rank+by)%c.Ranks); err != nil {
			return err
		}
		return c.Receive(d.stream(), addr(d, y), y.N, wireType[T](), (c.Rank-by+c.Ranks)%c.Ranks)
	}))
}

func pointer(bytes int) cuda.Pointer { return cuda.Pointer(bytes) }
