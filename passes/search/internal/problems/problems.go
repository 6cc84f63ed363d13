// Package problems has the problems on which tests of the planner's packages run.
package problems

import (
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes/search/space"
)

// Cluster returns a cluster of the catalogue, as a job names it.
func Cluster(t testing.TB, name string, nodes, devices int) *costmodel.Cluster {
	t.Helper()
	c, err := costmodel.Resolve(costmodel.Ref{Node: name, Nodes: nodes, Devices: devices}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Mixed is mixed precision with BF16.
var Mixed = ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32,
	Moments: ir.F32}

// New returns the problem of a model on a cluster, with AdamW and 10 % headroom.
func New(c *costmodel.Cluster, cfg spec.Config, seq, batch int, p ir.Precision) *space.Problem {
	return &space.Problem{Model: zoo.Build("m", cfg, zoo.Options{SeqLen: seq, Batch: 1, Elem: p.Compute}), Cluster: c,
		GlobalBatch: batch, Precision: p, Headroom: 0.1,
		Recipe: ir.Recipe{Optimizer: "adamw", Sides: engines.PlancEngine.Sides(c),
			VocabMultiple:   engines.PlancEngine.VocabMultiple(c),
			PrepostReceives: engines.PlancEngine.PrepostsReceives(c)}}
}

// GPT175B is GPT-3 175B on 1,024 A100, with the vocabulary padded as in Megatron-LM.
func GPT175B(t testing.TB) *space.Problem {
	return New(Cluster(t, "dgx-a100", 128, 0), GPT2(96, 12288, 96, 51200, 2048), 2048, 1536, Mixed)
}

// Llama405B is Llama 3 405B on 16,384 H100.
func Llama405B(t testing.TB) *space.Problem {
	return New(Cluster(t, "dgx-h100", 2048, 0), Llama(Sizes{126, 16384, 128, 8, 53248, 128256, 8192}), 8192,
		2048, Mixed)
}

// Mixtral8x7B is Mixtral 8x7B on 64 H100.
func Mixtral8x7B(t testing.TB) *space.Problem {
	cfg := Llama(Sizes{32, 4096, 32, 8, 14336, 32000, 4096})
	cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN, cfg.RouteShare = spec.Mixtral, 8, 2, 14336, true
	return New(Cluster(t, "dgx-h100", 8, 0), cfg, 4096, 1024, Mixed)
}

// DeepSeekV3 is DeepSeek-V3 on 2,048 H800, with the batch of its report.
func DeepSeekV3(t testing.TB) *space.Problem {
	cfg, err := spec.LoadModel("deepseek-v3", nil)
	if err != nil {
		t.Fatal(err)
	}
	return New(Cluster(t, "dgx-h800", 256, 0), *cfg, 4096, 15360, Mixed)
}
