package search

import (
	"testing"
)

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

func BenchmarkSearchMixtral(b *testing.B) { benchmarkSearch(b, problemMixtral(b)) }

func BenchmarkSearchDeepSeek(b *testing.B) { benchmarkSearch(b, problemDeepSeek(b)) }

// BenchmarkExplainDeepSeek is the work of explain for DeepSeek-V3.
func BenchmarkExplainDeepSeek(b *testing.B) {
	p := problemDeepSeek(b)
	for b.Loop() {
		r := must(b, p)
		r.Beyond(671e9, r.Fastest)
	}
}
