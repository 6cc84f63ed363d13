package search

import (
	"testing"

	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search/internal/problems"
)

// Problems of package problems, by short names.
var (
	problem, cluster, randomProblem, randomCluster = problems.New, problems.Cluster, problems.Random,
		problems.RandomCluster
	gpt2Config, mixed               = problems.GPT2, problems.Mixed
	problem175, problem405          = problems.GPT175B, problems.Llama405B
	problemMixtral, problemDeepSeek = problems.Mixtral8x7B, problems.DeepSeekV3
)

// llamaConfig returns the configuration of a Llama.
func llamaConfig(layers, hidden, heads, kvHeads, ffn, vocab, seq int) spec.Config {
	return problems.Llama(problems.Sizes{Layers: layers, Hidden: hidden, Heads: heads, KVHeads: kvHeads, FFN: ffn,
		Vocab: vocab, Seq: seq})
}

// gpt3 is GPT-3 175B on nodes of 8 H100.
func gpt3(t testing.TB, nodes int) *Problem {
	return problem(cluster(t, "dgx-h100", nodes, 0), gpt2Config(96, 12288, 96, 50257, 2048), 2048, 1536, mixed)
}

func must(t testing.TB, p *Problem) *Result {
	t.Helper()
	r, err := Search(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
