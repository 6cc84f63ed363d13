package main

import "fmt"

// shape is the GEMM c[m,n] = op(a)·op(b).
type shape struct {
	model   string
	what    string
	m, n, k int
	ta, tb  bool
}

func (s shape) flops() float64 { return 2 * float64(s.m) * float64(s.n) * float64(s.k) }

func (s shape) String() string { return fmt.Sprintf("%s %s", s.model, s.what) }

// shapes returns the GEMMs of a step of three models, each once: for every weight the forward GEMM, the gradient of
// its input and its own gradient. The models are those of bench/step.
func shapes() (all []shape) {
	for _, m := range []struct {
		name                  string
		tokens, hidden, vocab int
	}{{"nano", 12 * 64, 128, 65}, {"mid", 8 * 256, 384, 65}, {"gpt2", 4 * 64, 768, 50257}} {
		add := func(what string, in, out int) {
			t := m.tokens
			all = append(all,
				shape{m.name, what, t, out, in, false, false},
				shape{m.name, what + " dx", t, in, out, false, true},
				shape{m.name, what + " dw", in, out, t, true, false})
		}
		add("proj", m.hidden, m.hidden)
		add("up", m.hidden, 4*m.hidden)
		add("down", 4*m.hidden, m.hidden)
		t, e, v := m.tokens, m.hidden, m.vocab
		all = append(all, // the classifier is [vocab, hidden]
			shape{m.name, "head", t, v, e, false, true},
			shape{m.name, "head dx", t, e, v, false, false},
			shape{m.name, "head dw", v, e, t, true, false})
	}
	return all
}

// cubes returns shapes for the share of the limit; OpenBLAS is at its best with the smallest.
func cubes() (all []shape) {
	for _, n := range []int{64, 256, 768, 1024, 2048} {
		all = append(all, shape{"cube", fmt.Sprint(n), n, n, n, false, false})
	}
	return append(all, shape{"cube", "768 tb", 768, 768, 768, false, true}, shape{"cube", "768 ta", 768, 768, 768,
		true, false},
		shape{"cube", "1024 tb", 1024, 1024, 1024, false, true}, shape{"cube", "1024 ta", 1024, 1024, 1024,
			true, false})
}
