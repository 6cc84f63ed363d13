package comm

// Shift moves each member's data on by so many members, round the group:
//
//	dst = src of member (me-by) mod n
//
// Each sends one message and takes one, and none waits for a member that waits for it: all publish first. dst is not
// src.
func Shift[F Float](g *Group, dst, src []F, by int) error {
	n := g.Size()
	by = (by%n + n) % n
	if by == 0 {
		copy(dst, src)
		return nil
	}
	g.note("shift", len(src)*elemSize[F]())
	if err := open(g, "shift", src); err != nil {
		return err
	}
	copy(dst, peer[F](g, (g.me-by+n)%n))
	return g.ch.meet(g.me, "shift")
}
