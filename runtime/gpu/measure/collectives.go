//go:build cuda && linux

package measure

import (
	"context"
	"time"

	"github.com/planc-dev/planc/cuda"
)

// collectives measures collectives among the first 2, 4, 8… GPUs, and among all.
func (b *bench) collectives() error {
	if b.comm == nil {
		return nil
	}
	for n := 2; ; n = min(2*n, b.ranks) {
		if err := b.collectivesOf(n); err != nil || n == b.ranks {
			return err
		}
	}
}

// collectivesOf measures collectives in a group of n GPUs.
func (b *bench) collectivesOf(n int) error {
	color := 0
	if b.rank >= n {
		color = cuda.NoColor
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	group, err := b.comm.Split(ctx, color, b.rank, 0)
	if err != nil {
		return err
	}
	for _, of := range []string{OfAllReduce, OfAllGather, OfReduceScatter, OfAllToAll, OfSend} {
		var pace pace
		for _, bytes := range collectiveSizes {
			p := Point{Of: of, Type: "bf16", Bytes: bytes, Ranks: n}
			if !pace.affords(float64(bytes)) {
				b.skip(p)
				continue
			}
			err := b.withOperands(func(at []cuda.Memory) error {
				return b.point(p, &pace, float64(bytes), b.collective(p, group, at[0].Pointer, at[1].Pointer))
			}, bytes, bytes)
			if err != nil {
				return err
			}
		}
	}
	if group == nil {
		return nil
	}
	return group.Close(ctx)
}

// collective returns a point's call on this GPU, and nil if the GPU is not in the group.
func (b *bench) collective(p Point, c *cuda.Comm, to, from cuda.Pointer) func() error {
	if c == nil {
		return nil
	}
	const t = cuda.BFloat16
	elems := int(p.Bytes / 2)
	each := elems / p.Ranks
	switch p.Of {
	case OfAllReduce:
		return func() error { return c.AllReduce(b.stream, to, from, elems, t, cuda.Sum) }
	case OfAllGather:
		return func() error { return c.AllGather(b.stream, to, from, each, t) }
	case OfReduceScatter:
		return func() error { return c.ReduceScatter(b.stream, to, from, each, t, cuda.Sum) }
	case OfAllToAll:
		return func() error {
			return c.Group(func() error {
				for peer := range p.Ranks {
					at := cuda.Pointer(2 * each * peer)
					if err := c.Send(b.stream, from+at, each, t, peer); err != nil {
						return err
					}
					if err := c.Receive(b.stream, to+at, each, t, peer); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	return func() error { // a ring: to the next rank, from the previous one
		return c.Group(func() error {
			if err := c.Send(b.stream, from, elems, t, (c.Rank+1)%p.Ranks); err != nil {
				return err
			}
			return c.Receive(b.stream, to, elems, t, (c.Rank+p.Ranks-1)%p.Ranks)
		})
	}
}
