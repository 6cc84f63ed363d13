package search

import (
	"testing"
)

func problem175(t testing.TB) *Problem {
	return problem(cluster(t, "dgx-a100", 128, 0), gpt2Config(96, 12288, 96, 51200, 2048), 2048, 1536, mixed)
}

func problem405(t testing.TB) *Problem {
	return problem(cluster(t, "dgx-h100", 2048, 0), llamaConfig(126, 16384, 128, 8, 53248, 128256, 8192), 8192, 2048, mixed)
}

func BenchmarkSearch175B(b *testing.B) {
	p := problem175(b)
	for b.Loop() {
		must(b, p)
	}
}

func BenchmarkSearch405B(b *testing.B) {
	p := problem405(b)
	for b.Loop() {
		must(b, p)
	}
}

func TestCensus(t *testing.T) {
	for _, p := range []*Problem{problem175(t), problem405(t)} {
		s, _ := newSearcher(p)
		sp, _ := s.space(p)
		byPP := map[int]int{}
		chunks := 0
		for _, f := range sp.families {
			byPP[f.plan.PP] += f.size
			chunks += f.size * f.plan.PP * f.plan.VPP
		}
		t.Log(len(sp.families), sp.size, byPP, chunks/sp.size)
	}
}
