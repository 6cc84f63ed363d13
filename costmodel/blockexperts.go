package costmodel

import "github.com/planc-dev/planc/ir"

// experts adds a router and its experts in the place of the MLP, or beside the one that all tokens share. A rank holds
// Experts / EP of them, cut over ETP; the tokens that it has, of those that sp split, go to their choices and back, spread
// evenly:
//
//	router     a product with as many columns as there are experts, and the choice
//	dispatch   tokens are sorted by rank, sent, and sorted by expert; all-gathered over etp
//	experts    one grouped product a matrix: a rank's experts are its batch, the tokens of each its rows
//	combine    the way back, and the sum over a token's choices; reduce-scattered over etp
func (b *builder) experts(l *Layer) {
	s, h := b.s, float64(b.s.Hidden)
	ep, etp := float64(max(1, b.p.EP)), float64(max(1, b.p.ETP))
	rows, sent := b.rows(etp)
	here, f := float64(s.Experts)/ep, float64(s.ExpertFFN)/etp
	wide := f
	if s.Gated {
		wide = 2 * f
	}
	b.product(l, b.near, float64(s.Experts), h)
	b.stream(&l.Forward, b.near, 3*float64(s.Experts), 4) // softmax, choice, counts
	b.stream(&l.Backward, b.near, 3*float64(s.Experts), 3)
	b.move(l, sent, etp, true)
	b.grouped(l, here, rows, wide, h)
	b.stream(&l.Forward, rows, wide+f, 1)
	b.stream(&l.Backward, rows, 2*wide+f, 1)
	b.grouped(l, here, rows, h, f)
	b.move(l, sent, etp, false)
}

// rows are those that a rank's experts take, one for each choice of a token, and those that it sends: with sp the ranks of an
// etp group send their own and gather what came, else they have the same tokens.
func (b *builder) rows(etp float64) (taken, sent float64) {
	taken = b.tokens / b.tp * etp * float64(b.s.Choices)
	if b.p.SP {
		return taken, taken / etp
	}
	return taken, taken
}

// move is the way to the experts, or back from them; backward goes the other way.
func (b *builder) move(l *Layer, sent, etp float64, out bool) {
	h := float64(b.s.Hidden)
	for _, f := range []*Function{&l.Forward, &l.Backward} {
		b.stream(f, sent, 2*2*h, 2) // two sorts, each read and written
		if b.p.EP > 1 {
			f.Comms = append(f.Comms, Exchange{Op: ir.OpAllToAll, Bytes: b.size * sent * h, Axis: "ep"})
		}
	}
	switch {
	case etp == 1:
		return
	case !b.p.SP: // what the parts of an expert give is summed
		f := &l.Forward
		if out {
			f = &l.Backward
		}
		f.Comms = append(f.Comms, Exchange{Op: ir.OpAllReduce, Bytes: b.size * sent * h, Axis: "etp"})
		return
	}
	gathers, scatters := &l.Forward, &l.Backward
	if !out {
		gathers, scatters = scatters, gathers
	}
	gathers.Comms = append(gathers.Comms, Exchange{Op: ir.OpAllGather, Bytes: b.size * sent * etp * h, Axis: "etp"})
	scatters.Comms = append(scatters.Comms, Exchange{Op: ir.OpReduceScatter, Bytes: b.size * sent * etp * h, Axis: "etp"})
}

// grouped is a product of each of some experts with its share of the rows, n columns, depth k, with its two gradients.
func (b *builder) grouped(l *Layer, experts, rows, n, k float64) {
	one := func(x, y, z, weights float64) Op {
		return Op{Kind: Matrix, Flops: 2 * experts * x * y * z, Bytes: b.size*experts*(x*z+z*y+x*y) + weights, Shape: GEMM{x, y, z, experts}, Kernel: 1}
	}
	each := rows / experts
	if b.p.Narrow {
		b.stream(&l.Forward, rows, 2*k, 1)
		b.stream(&l.Backward, rows, 2*n, 1)
	}
	l.Forward.add(one(each, n, k, 0))
	l.Backward.add(one(each, k, n, 0))
	l.Weights.add(one(k, n, each, 8*experts*n*k)) // accumulated in f32: read and written
}

// routed is what a block saves of its experts' work, in bytes: the tokens as they were sorted, and what each product gave.
func (b *builder) routed() float64 {
	s := b.s
	if s.Experts == 0 {
		return 0
	}
	etp := float64(max(1, b.p.ETP))
	columns := 2 * float64(s.ExpertFFN) / etp
	if s.Gated {
		columns += float64(s.ExpertFFN) / etp
	}
	rows, sent := b.rows(etp)
	h := float64(s.Hidden)
	return b.size * (rows*(h+columns) + sent*h)
}
