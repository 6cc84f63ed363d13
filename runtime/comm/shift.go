package comm

// Shift moves each member's data by a number of members, cyclically:
//
//	dst = src of member (me-by) mod n
//
// Each member sends one message and receives one. There is no deadlock, because all members publish first. dst must not
// be src.
func Shift[F Float](g *Group, dst, src []F, by int) error {
	n := g.Size()
	by = (by%n + n) % n
	if by == 0 {
		copy(dst, src)
		return nil
	}
	g.begin("shift", len(src)*elemSize[F]())
	if err := open(g, "shift", src); err != nil {
		return err
	}
	copy(dst, peer[F](g, (g.me-by+n)%n))
	return g.end("shift")
}
