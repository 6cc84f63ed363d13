package ir

import (
	"fmt"
	"strings"
	"testing"
)

// ring is attention over three ranks and its gradient, in turns.
const ring = `program m stage 0
plan PLAN
mesh cp=3
recipe optimizer=sgd
segment s x1
func s.forward
  input q : f32[batch=1,seq=12@zigzag:cp,head=2,head_dim=4]
  input p : f32[batch=1,seq=12@zigzag:cp,head=2,head_dim=4]
  input k : f32[batch=1,k_seq=12@zigzag:cp,head=2,head_dim=4]
  input v : f32[batch=1,k_seq=12@zigzag:cp,head=2,v_dim=4]
  k1 = shift k {dim=k_seq axes=zigzag:cp+1} : f32[batch=1,k_seq=12@zigzag:cp+1,head=2,head_dim=4] !core
  v1 = shift v {dim=k_seq axes=zigzag:cp+1} : f32[batch=1,k_seq=12@zigzag:cp+1,head=2,v_dim=4] !core
  o0, l0 = attention q, k, v {axes=zigzag:cp scale=1 causal} : f32[batch=1,seq=12@zigzag:cp,head=2,v_dim=4], f32[batch=1,seq=12@zigzag:cp,head=2] !core
  k2 = shift k1 {dim=k_seq axes=zigzag:cp+2} : f32[batch=1,k_seq=12@zigzag:cp+2,head=2,head_dim=4] !core
  v2 = shift v1 {dim=k_seq axes=zigzag:cp+2} : f32[batch=1,k_seq=12@zigzag:cp+2,head=2,v_dim=4] !core
  o1, l1 = attention q, k1, v1, o0, l0 {axes=zigzag:cp scale=1 causal} : f32[batch=1,seq=12@zigzag:cp,head=2,v_dim=4], f32[batch=1,seq=12@zigzag:cp,head=2] !core
  o, l = attention q, k2, v2, o1, l1 {axes=zigzag:cp scale=1 causal} : f32[batch=1,seq=12@zigzag:cp,head=2,v_dim=4], f32[batch=1,seq=12@zigzag:cp,head=2] !core
  return o
`

var wrongRings = []struct{ name, old, now, want string }{
	{"turn left out", "attention q, k2, v2, o1, l1", "attention q, k2, v2, o0, l0",
		"o0, which it merges, is not the result of the previous turn only"},
	{"last turn left out", "return o\n", "return o1\n",
		"o1, which it merges, is not the result of the previous turn only"},
	{"turn met twice", "attention q, k2, v2, o1, l1", "attention q, k1, v1, o1, l1", "keys of turn 1 occur twice"},
	{"nothing joined", "attention q, k2, v2, o1, l1", "attention q, k2, v2", "keys of turn 2 are missing"},
	{"one joined alone", "attention q, k2, v2, o1, l1", "attention q, k2, v2, o1",
		"it merges a partial result without its log-sum-exp, or the log-sum-exp without the result"},
	{"keys of two turns", "attention q, k2, v2, o1, l1", "attention q, k2, v1, o1, l1",
		"dim k_seq is split over [zigzag:cp+2] and [zigzag:cp+1]"},
	{"other keys", "k2 = shift k1 {", "k2 = shift k {", ""}, // the same keys, further on
	{"other queries", "attention q, k1, v1", "attention p, k1, v1", "its turns have different operands"},
	{"already there", "k1 = shift k {dim=k_seq axes=zigzag:cp+1} : f32[batch=1,k_seq=12@zigzag:cp+1",
		"k1 = shift k {dim=k_seq axes=zigzag:cp} : f32[batch=1,k_seq=12@zigzag:cp",
		"its parts are at that position already"},
	{"gathered away", "k2 = shift k1 {dim=k_seq axes=zigzag:cp+2} : f32[batch=1,k_seq=12@zigzag:cp+2",
		"k2 = all_gather k1 {dim=k_seq axes=zigzag:cp+1} : f32[batch=1,k_seq=12",
		"the parts of k_seq are not at their home ranks"},
	{"a plain axis", "k1 = shift k {dim=k_seq axes=zigzag:cp+1}", "k1 = shift k {dim=k_seq axes=cp}",
		"cp must be the zigzag axis that splits k_seq first"},
}

func TestRing(t *testing.T) {
	plan := SerialPlan(1, 1, FullPrecision(F32))
	plan.CP, plan.CPKind = 3, "ring"
	text := strings.Replace(ring, "PLAN", plan.Text(), 1)
	check := func(text string) error {
		p, err := ParseProgram(text)
		if err != nil {
			return err
		}
		if second := p.String(); p.String() != second || !strings.Contains(second, "@zigzag:cp+2") {
			t.Errorf("printed as\n%s", second)
		}
		return p.Check([]string{"partition"})
	}
	if err := check(text); err != nil {
		t.Fatal(err)
	}
	for _, w := range wrongRings {
		spoilt := strings.Replace(text, w.old, w.now, 1)
		if spoilt == text {
			t.Errorf("%s: nothing to spoil", w.name)
		}
		if err := check(spoilt); err == nil != (w.want == "") || err != nil && !strings.Contains(err.Error(), w.want) {
			t.Errorf("%s:\n got %v\nwant %s", w.name, err, w.want)
		}
	}
}

// The pairs of a turn are those that one counts.
func TestTurnPairs(t *testing.T) {
	for _, c := range []struct {
		size, ranks, window int
	}{{12, 3, 0}, {24, 4, 5}, {24, 4, 1}, {16, 2, 9}, {40, 5, 40}, {8, 4, 2}} {
		for _, causal := range []bool{true, false} {
			if c.window > 0 && !causal {
				continue
			}
			for turn := range c.ranks {
				for i := range c.ranks {
					want := countPairs(c.size, c.ranks, i, turn, c.window, causal)
					if got := zigzagPairs(c.size, c.ranks, i, turn, c.window, causal); got != want {
						t.Errorf("%+v causal %v, rank %d turn %d: %d pairs, want %d", c, causal, i, turn, got, want)
					}
				}
			}
		}
	}
}

func countPairs(size, n, rank, turn, window int, causal bool) (sum int) {
	chunk := size / (2 * n)
	has := func(r, p int) bool { return p/chunk == r || p/chunk == 2*n-1-r }
	for q := range size {
		for k := range size {
			seen := !causal || k <= q && (window == 0 || q-k < window)
			if seen && has(rank, q) && has((rank-turn+n)%n, k) {
				sum++
			}
		}
	}
	return sum
}

// causalAttr returns attributes of causal attention with a window; 0: none.
func causalAttr(window int) Attr {
	return Attr{AttentionMask: AttentionMask{Causal: true, Window: window}}
}

// All ranks have the same work in each turn of a causal ring, and all turns what attention has; a window leaves the
// turns of neighbours.
func TestTurns(t *testing.T) {
	causal, inLayers := causalAttr(0), causalAttr(8)
	inLayers.Layers = "1l1f"
	sum := 0.0
	for turn := range 4 {
		sum += turnPairs(&causal, 64, 4, turn)
	}
	if want := 64.0 * 65 / 2 / 4; sum != want {
		t.Errorf("%v pairs a rank, want %v", sum, want)
	}
	for _, c := range []struct {
		attr Attr
		want string
	}{
		{causal, "[0 1 2 3]"}, {Attr{}, "[0 1 2 3]"}, {causalAttr(8), "[0 1 3]"},
		{causalAttr(1), "[0]"}, {inLayers, "[0 1 2 3]"},
	} {
		if got := fmt.Sprint(Turns(&c.attr, 64, 4)); got != c.want {
			t.Errorf("%v: turns %s, want %s", &c.attr, got, c.want)
		}
	}
}
