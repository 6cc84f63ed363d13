package search

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// problem175 is GPT-3 175B on 1,024 A100, with the vocabulary padded as in Megatron-LM.
func problem175(t testing.TB) *Problem {
	return problem(cluster(t, "dgx-a100", 128, 0), gpt2Config(96, 12288, 96, 51200, 2048), 2048, 1536, mixed)
}

// problem405 is Llama 3 405B on 16,384 H100.
func problem405(t testing.TB) *Problem {
	return problem(cluster(t, "dgx-h100", 2048, 0), llamaConfig(126, 16384, 128, 8, 53248, 128256, 8192), 8192,
		2048, mixed)
}

func BenchmarkSearch175B(b *testing.B) { benchmarkSearch(b, problem175(b)) }
func BenchmarkSearch405B(b *testing.B) { benchmarkSearch(b, problem405(b)) }

// benchmarkSearch runs a complete search with its explanation and empty caches.
func benchmarkSearch(b *testing.B, p *Problem) {
	var n Counts
	for b.Loop() {
		n = must(b, p).Counts
	}
	b.ReportMetric(float64(n.Space), "plans")
	b.ReportMetric(float64(n.Simulated), "simulated")
}

// sortAsSpace sorts plans of a space by the order of their families in it.
func sortAsSpace(sp *planSpace, points []candidate) {
	first := map[*family]int{}
	for _, f := range sp.families {
		first[&f.family] = f.first
	}
	slices.SortStableFunc(points, func(a, b candidate) int { return cmp.Compare(first[a.family], first[b.family]) })
}

// drawPoints draws distinct plans of the searcher's space, with random recompute counts. It sets searched.
func drawPoints(t testing.TB, s *searcher, r *rand.Rand, n int) []candidate {
	t.Helper()
	sp, err := s.space(s.problem)
	if err != nil {
		t.Fatal(err)
	}
	s.searched = sp
	seen, agains := map[ir.Plan]bool{}, map[*spaceFamily][]space.RecomputeChoice{}
	var out []candidate
	for len(out) < n {
		f := sp.families[r.IntN(len(sp.families))]
		if agains[f] == nil {
			agains[f] = s.problem.RecomputeChoices(&f.plan, slices.Max(f.counts))
		}
		shardings, orders := s.Shardings(s.problem, &f.plan), f.axisOrders()
		a := &agains[f][r.IntN(len(agains[f]))]
		p := candidate{family: &f.family, sharding: &shardings[r.IntN(len(shardings))], recompute: a,
			n:     a.MinN + r.IntN(a.MaxN-a.MinN+1),
			order: &orders[r.IntN(len(orders))]}
		if k := p.plan(); !seen[k] {
			seen[k] = true
			out = append(out, p)
		}
	}
	return out
}

// BenchmarkPricePlan prices plans of the whole space of GPT-3 175B on 1,024 A100, one by one. A price is the closed
// form of the step, a lower bound of the simulation, and the exact bytes of the fullest stage's arena. The metric gap
// is the mean excess of the simulation over plans that fit. The step includes the passes of each chunk with their
// collectives and ZeRO's communication, the pipeline's fill and drain with its messages, the optimizer and the step's
// overhead. The costs of layers, the chunks of a split and the buffers of a schedule are cached; plans are not, and
// no bound prunes. BenchmarkPricePlan visits plans in the order of the space, as a search does.
// BenchmarkPriceShuffled visits them in random order, so that it also waits for memory.
func BenchmarkPricePlan(b *testing.B)     { benchmarkPrice(b, false) }
func BenchmarkPriceShuffled(b *testing.B) { benchmarkPrice(b, true) }

func benchmarkPrice(b *testing.B, shuffled bool) {
	p := problem175(b)
	s, err := newSearcher(p)
	if err != nil {
		b.Fatal(err)
	}
	points := drawPoints(b, s, rand.New(rand.NewPCG(1, 1)), 1<<17)
	gaps := gapsOf(s, points[:3000])
	if !shuffled {
		sortAsSpace(s.searched, points)
	}
	for i := range points { // fills the caches of layer costs
		s.quote(&points[i])
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		s.quote(&points[i%len(points)])
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "plans/s")
	b.ReportMetric(100*mean(gaps), "gap-%")
}

// gapsOf returns the fractions by which the simulations of plans that fit exceed their closed forms.
func gapsOf(s *searcher, points []candidate) (out []float64) {
	for i := range points {
		q := s.quote(&points[i])
		if q.bytes > s.arenaCapacity {
			continue
		}
		out = append(out, float64(s.stepOf(&points[i]).Total()/q.time)-1)
	}
	return out
}

func mean(vs []float64) (sum float64) {
	for _, v := range vs {
		sum += v / float64(len(vs))
	}
	return sum
}

// The closed form is a lower bound of the simulation, and close to it for good plans.
func TestGap(t *testing.T) {
	for _, x := range []struct {
		name string
		p    *Problem
		mean float64 // at most
	}{
		{"GPT-3 175B on 1,024 A100", problem175(t), 0.25},
		{"Llama 3 405B on 16,384 H100", problem405(t), 0.25},
	} {
		s, err := newSearcher(x.p)
		if err != nil {
			t.Fatal(err)
		}
		gaps := gapsOf(s, drawPoints(t, s, rand.New(rand.NewPCG(2, 3)), 1500))
		slices.Sort(gaps)
		t.Logf("%s: of %d plans that fit, the simulation exceeds the closed form by %.2f %% in the mean, %.2f %% in "+
			"the median, %.1f %% at most",
			x.name, len(gaps), 100*mean(gaps), 100*gaps[len(gaps)/2], 100*gaps[len(gaps)-1])
		if gaps[0] < 0 || mean(gaps) > x.mean || len(gaps) < 100 {
			t.Errorf("%s: the closed form is off by %v to %v, %v in the mean", x.name, gaps[0],
				gaps[len(gaps)-1], mean(gaps))
		}
	}
}

// BenchmarkExplain405B is the work of explain for Llama 3 405B on 1,024 H100: the search, alternatives, levers and
// rules of thumb.
func BenchmarkExplain405B(b *testing.B) {
	p := problem(cluster(b, "dgx-h100", 128, 0), llamaConfig(126, 16384, 128, 8, 53248, 128256, 8192), 8192,
		2048, mixed)
	for b.Loop() {
		r := must(b, p)
		r.Beyond(405e9, r.Fastest)
	}
}

// BenchmarkLongRows is a search with cp free: Llama 3 405B on 16,384 H100 with 131,072 positions.
func BenchmarkLongRows(b *testing.B) {
	benchmarkSearch(b, problem(cluster(b, "dgx-h100", 2048, 0), llamaConfig(126, 16384, 128, 8, 53248, 128256, 131072),
		131072, 128, mixed))
}

// BenchmarkWithin searches 1 to 256 nodes for a plan of Llama 3 70B that reaches 1.45 M tokens/s. The metric nodes is
// the first number of nodes that does.
func BenchmarkWithin(b *testing.B) {
	p := problem(cluster(b, "dgx-h100", 256, 0), llamaConfig(80, 8192, 64, 8, 28672, 128256, 8192), 8192, 1024, mixed)
	for b.Loop() {
		var r Series
		for nodes := 1; nodes <= 256; nodes++ {
			q, c := *p, *p.Cluster
			c.Nodes, q.Cluster = nodes, &c
			if _, ok, _ := r.Within(&q, 8192*1024/1.45e6); ok {
				b.ReportMetric(float64(nodes), "nodes")
				break
			}
		}
	}
}

// problemMixtral is Mixtral 8x7B on 64 H100.
func problemMixtral(t testing.TB) *Problem {
	cfg := llamaConfig(32, 4096, 32, 8, 14336, 32000, 4096)
	cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN, cfg.RouteShare = spec.Mixtral, 8, 2, 14336, true
	return problem(cluster(t, "dgx-h100", 8, 0), cfg, 4096, 1024, mixed)
}

func BenchmarkSearchMixtral(b *testing.B) { benchmarkSearch(b, problemMixtral(b)) }

// problemDeepSeek is DeepSeek-V3 on 2,048 H800, with the batch of its report.
func problemDeepSeek(t testing.TB) *Problem {
	cfg, err := spec.LoadModel("deepseek-v3", nil)
	if err != nil {
		t.Fatal(err)
	}
	return problem(cluster(t, "dgx-h800", 256, 0), *cfg, 4096, 15360, mixed)
}

func BenchmarkSearchDeepSeek(b *testing.B) { benchmarkSearch(b, problemDeepSeek(b)) }

// BenchmarkExplainDeepSeek is the work of explain for DeepSeek-V3.
func BenchmarkExplainDeepSeek(b *testing.B) {
	p := problemDeepSeek(b)
	for b.Loop() {
		r := must(b, p)
		r.Beyond(671e9, r.Fastest)
	}
}
