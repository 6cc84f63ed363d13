package price

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/planc-dev/planc/passes/search/internal/problems"
	"github.com/planc-dev/planc/passes/search/space"
)

// A base with recomputed blocks that is derived from the plain one equals one that is compiled completely: its
// program to the letter, its sizes and its profile.
func TestRecomputingIsCompiled(t *testing.T) {
	for name, p := range map[string]*space.Problem{"dense": problem175(t), "gated": problem405(t),
		"experts": problemMixtral(t), "latent": problemDeepSeek(t)} {
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		list, plans := LayerList{}, problems.PlansOf(p)
		plans.MaxCP = 1
		for _, plan := range plans.Varied(t, rand.New(rand.NewPCG(4, 9)), 100) {
			list.Add(plan)
		}
		keys, step := withSplitBackward(p, list.list), 0
		if len(keys) < 20 {
			t.Errorf("%s: only %d bases", name, len(keys))
		}
		for i := 0; i < len(keys); i += 1 + len(keys)/draws(12) {
			k := keys[i].key
			k.recompute, k.split = []string{"selective", "full"}[step%2], k.tp > 1 && !k.sp && step%3 > 0
			step++
			got, want := s.recomputing(k, s.baseAt(k.withoutRecompute())), s.newBase(k, s.newProfile(k))
			if g, w := got.prog.String(), want.prog.String(); g != w {
				t.Errorf("%s %+v: the programs differ:\n%s\n%s", name, k, g, w)
			}
			alike := func(what string, got, want any) {
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s %+v: %s are %+v, compiled %+v", name, k, what, got, want)
				}
			}
			alike("lines", got.sizes, want.sizes)
			alike("kinds", got.kinds, want.kinds)
			alike("sizes", []int{got.stream, got.logits, got.castScratch, got.tied}, []int{want.stream, want.logits,
				want.castScratch, want.tied})
			alike("parameters", slices.Concat(got.elems, got.experts), slices.Concat(want.elems, want.experts))
			alike("rows", got.batchRows, want.batchRows)
			for j := range got.segs {
				g, w := got.segs[j], want.segs[j]
				g.variant, w.variant = nil, nil
				alike("profiles", g, w)
			}
		}
	}
}
