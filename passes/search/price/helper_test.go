package price

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search/internal/problems"
)

// Problems of package problems, by short names.
var (
	problem, cluster, randomProblem = problems.New, problems.Cluster, problems.Random
	gpt2Config, mixed               = problems.GPT2, problems.Mixed
	problem175, problem405          = problems.GPT175B, problems.Llama405B
	problemMixtral, problemDeepSeek = problems.Mixtral8x7B, problems.DeepSeekV3
)

// llamaConfig returns the configuration of a Llama.
func llamaConfig(layers, hidden, heads, kvHeads, ffn, vocab, seq int) spec.Config {
	return problems.Llama(problems.Sizes{Layers: layers, Hidden: hidden, Heads: heads, KVHeads: kvHeads, FFN: ffn,
		Vocab: vocab, Seq: seq})
}

// TestMain sets the garbage collector as planc does when it searches.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// isBrute reports whether tests take minutes: PLANC_BRUTE is set, as in the step brute of .ci/run.
func isBrute() bool { return os.Getenv("PLANC_BRUTE") != "" }

// draws returns how often a test draws: n times if isBrute, and otherwise a sixth of it.
func draws(n int) int {
	if isBrute() {
		return n
	}
	return n / 6
}
