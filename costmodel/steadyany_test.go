package costmodel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// anyTable is a timetable that no schedule has: up to three chunks a stage, of which all but the first lie anywhere,
// warm-ups of any length, long turns of actions in any order, in some of each two, some of which end long before those
// of other stages. Most such are deadlocks.
func anyTable(r *rand.Rand) *ir.Timetable {
	pp, vpp := 1+r.IntN(5), 1+r.IntN(3)
	t := &ir.Timetable{Micro: 1 + r.IntN(300), Chunks: make([][]int, pp)}
	for c := range pp * vpp {
		s := c % pp
		if c >= pp && r.IntN(3) == 0 {
			s = r.IntN(pp)
		}
		t.Chunks[s] = append(t.Chunks[s], c)
	}
	split, warm := r.IntN(2) == 0, 2*pp*vpp+1
	for s := range pp {
		t.Do = append(t.Do, anyTurns(r, len(t.Chunks[s]), t.Micro, warm, split))
	}
	return t
}

// anyTurns are those of a stage of so many chunks: forward passes, less than warm of each, what is done in turn, and
// what is left.
func anyTurns(r *rand.Rand, chunks, micro, warm int, split bool) (turns []ir.Turn) {
	kinds := []ir.ActionKind{ir.Forward, ir.Backward}
	if split {
		kinds = append(kinds, ir.WeightGrad)
	}
	left := map[ir.Action]int{}
	add := func(times int, actions ...ir.Action) {
		turns = append(turns, ir.Turn{Actions: actions, Times: times})
		for _, a := range actions {
			left[a] -= times
		}
	}
	var each []ir.Action
	largest := 0
	for c := range chunks {
		for _, k := range kinds {
			left[ir.Action{Kind: k, Chunk: c}] = micro
			each = append(each, ir.Action{Kind: k, Chunk: c})
		}
		n := min(micro, r.IntN(warm))
		largest = max(largest, n)
		add(n, ir.Action{Kind: ir.Forward, Chunk: c})
	}
	inTurn := slices.Clone(each)
	if r.IntN(6) == 0 {
		inTurn = append(inTurn, each...)
	}
	times := (micro - largest) / (len(inTurn) / len(each))
	if r.IntN(4) == 0 {
		times = min(times, 40+r.IntN(60))
	}
	r.Shuffle(len(inTurn), func(i, j int) { inTurn[i], inTurn[j] = inTurn[j], inTurn[i] })
	add(times, inTurn...)
	for _, a := range each {
		add(left[a], a)
	}
	add(1, ir.Action{Kind: ir.Finish})
	return turns
}

// anyTimes returns chunk times of a random kind: few ticks, many of them 0 or equal; arbitrary; some shorter than a
// tick; almost equal.
func anyTimes(r *rand.Rand, n int) []ChunkTime {
	kind := r.IntN(4)
	seconds := func() Seconds {
		switch {
		case kind == 0:
			return Seconds(r.IntN(3))
		case kind == 1 || kind == 2 && r.IntN(3) == 0:
			return Seconds(r.Float64()) * 1e-12
		case kind == 2:
			return Seconds(r.IntN(3)) * 1e6
		}
		return 1 + Seconds(r.IntN(4))/1000
	}
	out := make([]ChunkTime, n)
	for i := range out {
		out[i] = ChunkTime{Forward: seconds(), Backward: seconds(), Weights: seconds()}
		if r.IntN(3) > 0 {
			out[i].SendOutput, out[i].SendGradient = seconds(), seconds()
		}
	}
	return out
}

// Of timetables of any kind, too, the end where rounds are skipped is the end where none is, to the bit, and who is
// stuck is.
func TestAnySteadyIsWalked(t *testing.T) {
	skipped, ended := 0, 0
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		table := anyTable(r)
		chunks := 0
		for _, c := range table.Chunks {
			chunks += len(c)
		}
		p := &Pipeline{Timetable: table, Chunks: anyTimes(r, chunks), Preposted: r.IntN(2) == 0}
		walked, folded := newSimulation(p), newSimulation(p)
		stuck, err := walked.walk(), folded.fold()
		if (err == nil) != (stuck == nil) || stuck == nil && folded.end() != walked.end() {
			t.Fatalf("seed %d: %v, %v; walked %v, %v", seed, folded.end(), err, walked.end(), stuck)
		}
		if stuck == nil {
			ended++
			skipped += min(1, folded.steady.skipped)
		}
	}
	if ended < 1000 || skipped < ended/2 {
		t.Errorf("of %d that end, rounds of %d are skipped", ended, skipped)
	}
}

// Rounds go on while no comparison turns out otherwise. That all times have grown alike twice does not say so by
// itself: let w be the later of the turn before's u and v, u grow by 1 a turn from 2, v by 3 from 1. Then w is 2 by u
// and 4 by v, 2 more as in the turn before, and the next one is 7.
func TestComparisonsAlike(t *testing.T) {
	for _, test := range []struct {
		before, now []Seconds // margins
		rounds      int
	}{
		{[]Seconds{1}, []Seconds{-1}, 0},
		{[]Seconds{-1}, []Seconds{1}, 0},
		{[]Seconds{5, 7}, []Seconds{5, 4}, 1},
		{[]Seconds{5, 9}, []Seconds{5, 6}, 2}, // to a tie, where either may be taken for the later
		{[]Seconds{-9}, []Seconds{-6}, 2},
		{[]Seconds{3}, []Seconds{0}, 0},
		{[]Seconds{-3}, []Seconds{0}, 0},
		{[]Seconds{0}, []Seconds{3}, math.MaxInt},
		{[]Seconds{0, -2}, []Seconds{0, -3}, math.MaxInt},
		{[]Seconds{1}, []Seconds{1, 1}, 0},
	} {
		l := &steady{states: []turnState{{margins: test.before}, {margins: test.now}}}
		if got := l.alike(1); got != test.rounds {
			t.Errorf("margins %v, then %v: %d rounds, want %d", test.before, test.now, got, test.rounds)
		}
	}
}

// Rounds repeat if the same times grow by the same amounts: not as many others, as when a chunk's queue is one longer
// and another's is one shorter.
func TestSameTimesGrow(t *testing.T) {
	l := &steady{states: []turnState{
		{times: []Seconds{1, 1, 4}, shape: []int{2, 1}},
		{times: []Seconds{1, 1, 4}, shape: []int{1, 2}},
		{times: []Seconds{2, 3, 4}, shape: []int{1, 2}},
		{times: []Seconds{3, 5, 4}, shape: []int{1, 2}},
		{times: []Seconds{4, 7, 5}, shape: []int{1, 2}},
		{times: []Seconds{5, 9, 6}, shape: []int{2, 1}},
	}}
	for first, want := range []bool{false, true, false, false} {
		if got := l.repeats(first, first+1, first+2); got != want {
			t.Errorf("from state %d on: repeats is %v, want %v", first, got, want)
		}
	}
}
