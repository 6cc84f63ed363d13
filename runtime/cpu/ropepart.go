package cpu

// RopeRows describes the rows of RoPEPart: the Turn elements from From on of each row of Dim elements are
// rotated.
type RopeRows struct {
	Batch, Seq, Heads int
	Dim, From, Turn   int
	Pairs             bool // rotates neighbours; else elements that are Turn/2 apart
	Row               int  // elements of a token: those behind the heads are copied. 0: Heads*Dim
}

// Size returns the number of elements of a token.
func (r *RopeRows) Size() int { return max(r.Row, r.Heads*r.Dim) }

// ropePart rotates a part of each row: in MLA, only the last elements of queries and keys depend on the
// position.
func ropePart[F Float](y, x []F, r RopeRows, at Where, theta float64, scale RopeScale, inverse bool) {
	freqs := scale.turns(theta, r.Turn)
	half := r.Turn / 2
	var fixed [ropePairs]float64
	var turned [2 * ropePairs]F
	freq, cosSin := fixed[:], turned[:]
	if half > ropePairs {
		freq, cosSin = make([]float64, half), make([]F, 2*half)
	}
	freq, cos, sin := freq[:half], cosSin[:half], cosSin[half:][:half]
	for j := range freq {
		freq[j] = freqs.angle(j)
	}
	size := r.Size()
	for s := range r.Seq {
		angles(cos, sin, &freqs, freq, at.Of(s), inverse)
		for b := range r.Batch {
			i := (b*r.Seq + s) * size
			turnHeads(y[i:][:size], x[i:][:size], cos, sin, &r)
		}
	}
}

// turnHeads rotates the heads of one token.
func turnHeads[F Float](y, x, cos, sin []F, r *RopeRows) {
	step, other := 1, r.Turn/2
	if r.Pairs {
		step, other = 2, 1
	}
	for h := range r.Heads {
		to, from := y[h*r.Dim:][:r.Dim], x[h*r.Dim:][:r.Dim]
		copy(to[:r.From], from)
		copy(to[r.From+r.Turn:], from[r.From+r.Turn:])
		for j, c := range cos {
			i, d := r.From+j*step, sin[j]
			a, b := from[i], from[i+other]
			to[i], to[i+other] = F(a*c)-F(b*d), F(b*c)+F(a*d)
		}
	}
	copy(y[r.Heads*r.Dim:], x[r.Heads*r.Dim:])
}

func (v vectors) ropePart(y, x []float32, r RopeRows, at Where, theta float64, scale RopeScale, inverse bool) {
	freqs := scale.turns(theta, r.Turn)
	t := tableOf(&freqs, r.Turn/2, at, r.Seq)
	sin := t.sin
	if inverse {
		sin = t.minus
	}
	s := sweepOf(r.Batch*r.Seq, r.Size(), func(s *sweep, lo, hi int) {
		r := &s.rows
		for half, size := r.Turn/2, r.Size(); lo < hi; lo++ {
			at := lo % r.Seq * half
			turnHeads(s.x[0][lo*size:][:size], s.x[1][lo*size:][:size], s.x[2][at:][:half], s.x[3][at:][:half], r)
		}
	})
	s.x, s.rows = [5][]float32{y, x, t.cos, sin}, r
	s.call()
}
