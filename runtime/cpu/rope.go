package cpu

const ropePairs = 64 // pairs of elements rotated at a time

func rope[F Float](y, x []F, batch, seq, heads, dim, turn int, span Where, theta float64, scale RopeScale,
	inverse bool) {
	if turn < dim {
		pass(y, x, batch*seq*heads, dim, turn)
	}
	half, freqs := turn/2, scale.turns(theta, turn)
	for j0 := 0; j0 < half; j0 += ropePairs {
		n := min(ropePairs, half-j0)
		var freq [ropePairs]float64
		for j := range n {
			freq[j] = freqs.angle(j0 + j)
		}
		for s := range seq {
			var cos, sin [ropePairs]F
			angles(cos[:n], sin[:n], &freqs, freq[:n], span.Of(s), inverse)
			for b := range batch {
				for h := range heads {
					at := ((b*seq+s)*heads+h)*dim + j0
					rotate(y[at:][:half+n], x[at:][:half+n], cos[:n], sin[:n], half)
				}
			}
		}
	}
}

// angles computes the cosines and sines of the rotations with frequencies freq at a position.
func angles[F Float](cos, sin []F, f *turns, freq []float64, pos int, inverse bool) {
	for j, q := range freq {
		a, b := f.at(pos, q)
		if inverse {
			b = -b
		}
		cos[j], sin[j] = F(a), F(b)
	}
}

// pass copies what is not rotated: elements from turn on of each row.
func pass[F Float](y, x []F, rows, dim, turn int) {
	for i := range rows {
		copy(y[i*dim+turn:(i+1)*dim], x[i*dim+turn:])
	}
}

// rotate rotates the pairs (x[j], x[j+half]).
func rotate[F Float](y, x, cos, sin []F, half int) {
	n := len(cos)
	sin = sin[:n]
	x0, x1, y0, y1 := x[:n], x[half:][:n], y[:n], y[half:][:n]
	for j, c := range cos {
		a, b, s := x0[j], x1[j], sin[j]
		y0[j] = F(a*c) - F(b*s)
		y1[j] = F(b*c) + F(a*s)
	}
}
