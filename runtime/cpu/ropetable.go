package cpu

import (
	"sync"
	"sync/atomic"

	"github.com/planc-dev/planc/runtime/vec"
)

// ropeTable has the cosines and sines of all positions of a RoPE, a row of half for each position. They are
// the same in every layer and step, and take longer to compute than to use.
type ropeTable struct {
	freq            []float64
	attention       float64
	at              Where
	seq             int
	cos, sin, minus []float32 // minus is -sin
}

// ropeTables are the latest tables, at most keptTables. A program needs one for its queries and keys, or
// one for each kind of block and each part of its sequence.
var (
	ropeTables   atomic.Pointer[[]*ropeTable]
	ropeTablesMu sync.Mutex // held while one is added
)

const keptTables = 16

// RopeTable returns the cosines and sines of RoPE for seq positions, times the scaling's factor, in rows of
// turn/2. It is for devices that keep them in their own memory.
func RopeTable(seq, turn int, at Where, theta float64, scale RopeScale) (cos, sin []float64) {
	t, half := scale.turns(theta, turn), turn/2
	freq := make([]float64, half)
	for j := range freq {
		freq[j] = t.angle(j)
	}
	cos, sin = make([]float64, seq*half), make([]float64, seq*half)
	for s := range seq {
		angles(cos[s*half:][:half], sin[s*half:][:half], &t, freq, at.Of(s), false)
	}
	return cos, sin
}

// is reports whether the table has these frequencies and positions.
func (r *ropeTable) is(t *turns, half int, at Where, seq int) bool {
	if len(r.freq) != half || r.at != at || r.seq != seq || r.attention != t.attention {
		return false
	}
	for j, f := range r.freq {
		if t.angle(j) != f {
			return false
		}
	}
	return true
}

// tableOf returns a table, and computes it if needed.
func tableOf(t *turns, half int, at Where, seq int) *ropeTable {
	find := func() *ropeTable {
		if all := ropeTables.Load(); all != nil {
			for _, r := range *all {
				if r.is(t, half, at, seq) {
					return r
				}
			}
		}
		return nil
	}
	if r := find(); r != nil {
		return r
	}
	ropeTablesMu.Lock()
	defer ropeTablesMu.Unlock()
	if r := find(); r != nil {
		return r
	}
	r := newRopeTable(t, half, at, seq)
	all := []*ropeTable{r}
	if old := ropeTables.Load(); old != nil {
		all = append(all, (*old)[:min(len(*old), keptTables-1)]...)
	}
	ropeTables.Store(&all)
	return r
}

func newRopeTable(t *turns, half int, at Where, seq int) *ropeTable {
	r := &ropeTable{freq: make([]float64, half), attention: t.attention, at: at, seq: seq,
		cos: make([]float32, seq*half), sin: make([]float32, seq*half), minus: make([]float32, seq*half)}
	for j := range r.freq {
		r.freq[j] = t.angle(j)
	}
	for s := range seq {
		angles(r.cos[s*half:][:half], r.sin[s*half:][:half], t, r.freq, at.Of(s), false)
	}
	for i, b := range r.sin {
		r.minus[i] = -b
	}
	return r
}

func (v vectors) rope(y, x []float32, batch, seq, heads, dim, turn int, at Where, theta float64, scale RopeScale,
	inverse bool) {
	if turn < dim {
		pass(y, x, batch*seq*heads, dim, turn)
	}
	freqs := scale.turns(theta, turn)
	r := tableOf(&freqs, turn/2, at, seq)
	s := sweepOf(batch*seq, heads*dim, func(s *sweep, lo, hi int) {
		seq, heads, dim, half := s.i[0], s.i[1], s.i[2], s.i[3]
		for k := vec.Now(); lo < hi; lo++ {
			at, size := lo%seq*half, heads*dim
			k.Rotate(s.x[2][at:at+half], s.x[3][at:at+half], s.x[0][lo*size:][:size], s.x[1][lo*size:][:size],
				heads, dim, half)
		}
	})
	s.x, s.i = [5][]float32{y, x, r.cos, r.sin}, [4]int{seq, heads, dim, turn / 2}
	if inverse {
		s.x[3] = r.minus
	}
	s.call()
}
