package search
import ("testing";"fmt";"time")
func TestZZ(t *testing.T) {
	p := problemMixtral(t)
	s, _ := newSearcher(p)
	t0 := time.Now()
	sp, err := s.space(p)
	fmt.Println(err, "space", time.Since(t0), len(sp.families), sp.size, len(s.profiles), len(s.bases), len(s.states)); t0 = time.Now()
	s.best(sp, nil)
	fmt.Println("best", time.Since(t0), len(s.profiles), len(s.bases), len(s.states), len(s.layerCosts), len(s.settlings)); 
	n := map[string]int{}
	for k := range s.profiles { n[fmt.Sprint("tp ", k.tp)]++; n[fmt.Sprint("again ", k.again)]++; n[fmt.Sprint("apart ", k.apart, k.each)]++; n[fmt.Sprint("beyond ", k.replicas, k.experts.beyond)]++; n[fmt.Sprint("ep ", k.experts.ep, " etp ", k.experts.etp)]++ }
	fmt.Println(n)
	t0=time.Now()
	r := &Result{}
	r.Best, r.Counts, _ = s.best(sp, nil)
	r.searcher=s
	fmt.Println("again", time.Since(t0)); t0=time.Now()
	s.explain(sp, r)
	fmt.Println("explain", time.Since(t0), len(s.profiles))
}
