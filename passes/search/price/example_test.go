package price_test

import (
	"fmt"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes/search/price"
	"github.com/planc-dev/planc/passes/search/space"
)

// Example predicts the memory and the step of GPT-2 1.5B on 8 H100, with ZeRO 1 over all of them.
func Example() {
	model := spec.Config{Family: spec.GPT2, Vocab: 50257, Hidden: 1600, Layers: 48, Heads: 25, KVHeads: 25, HeadDim: 64,
		FFN: 6400, MaxPositions: 1024, Activation: "gelu_new", NormEps: 1e-5, Tied: true, AttentionBias: true,
		MLPBias: true}
	cluster, err := costmodel.Resolve(costmodel.Ref{Node: "dgx-h100", Nodes: 1}, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	problem := &space.Problem{Model: zoo.Build("gpt2-xl", model, zoo.Options{SeqLen: 1024, Batch: 1, Elem: ir.BF16}),
		Cluster: cluster, GlobalBatch: 512, Precision: ir.FullPrecision(ir.BF16), Recipe: ir.Recipe{Optimizer: "adamw"},
		Headroom: 0.1}
	pricer, err := price.New(problem)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := ir.SerialPlan(model.Layers, 8, problem.Precision)
	plan.DP, plan.MicroBatches, plan.Zero, plan.ZeroGroup = 8, 8, 1, 8
	p := pricer.Priced(price.CandidateOf(plan))
	fmt.Printf("%v: %v of %v, %v\n", p.Plan, costmodel.Bytes(p.Predict.MemoryBytes.Total),
		costmodel.Bytes(p.Predict.MemoryBytes.Capacity), p.Predict.StepS)
	// Output: dp 8 · zero 1 · micro_batch 8×8: 28.26 GiB of 71.19 GiB, 1.344 s
}
