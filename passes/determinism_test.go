package passes

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// The same input compiles to the same text.
func TestDeterminism(t *testing.T) {
	for _, c := range []spec.Config{gpt2, llama} {
		plan := planOf(c, 2, 4, true)
		plan.Zero = 1
		want := compile(t, build(c), plan, Options{}).String()
		for range 5 {
			if got := compile(t, build(c), plan, Options{}).String(); got != want {
				t.Fatalf("%s: two texts", c.Family)
			}
		}
	}
}

// shuffle orders a function's ops again, each behind what it needs.
func shuffle(f *ir.Func, r *rand.Rand) {
	made := map[*ir.Value]bool{}
	for _, v := range f.Inputs {
		made[v] = true
	}
	left := f.Nodes
	f.Nodes = nil
	for len(left) > 0 {
		var ready []int
		for i, n := range left {
			ok := true
			for _, a := range n.Args {
				ok = ok && made[a]
			}
			if ok {
				ready = append(ready, i)
			}
		}
		i := ready[r.IntN(len(ready))]
		for _, o := range left[i].Outs {
			made[o] = true
		}
		f.Nodes = append(f.Nodes, left[i])
		left = append(left[:i:i], left[i+1:]...)
	}
}

// The order of independent ops in the model changes no collective: not their kinds, axes, bytes and numbers.
func TestShuffle(t *testing.T) {
	for _, c := range []spec.Config{gpt2, llama} {
		for _, sp := range []bool{false, true} {
			plan := planOf(c, 2, 4, sp)
			all := func(p *ir.Program) (s string) {
				for _, seg := range p.Model.Segments {
					for _, f := range seg.Funcs() {
						s += fmt.Sprintf("%s: %s\n", f.Name, collectives(p, f))
					}
				}
				return s
			}
			want := all(compile(t, build(c), plan, Options{}))
			for seed := range uint64(10) {
				m := build(c)
				r := rand.New(rand.NewPCG(seed, 1))
				for _, seg := range m.Segments {
					for _, f := range seg.Funcs() {
						shuffle(f, r)
					}
				}
				p := compile(t, m, plan, Options{})
				if got := all(p); got != want {
					t.Errorf("%s sp %v seed %d:\n%s, want\n%s", c.Family, sp, seed, got, want)
				}
				if err := checkMemory(p); err != nil {
					t.Errorf("%s seed %d: %v", c.Family, seed, err)
				}
			}
		}
	}
}
