package planner_test

import (
	"fmt"

	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
)

// question is GPT-2 124M on one node of eight A100.
func question(more ...string) *planner.Question {
	sets := append([]string{"model=gpt2-124m", "cluster=dgx-a100", "train.global_batch=512", "train.seq_len=1024"},
		more...)
	var overrides []spec.Override
	for _, s := range sets {
		overrides = append(overrides, spec.SetFlag(s))
	}
	q, err := planner.Load("", nil, overrides...) // no job file, and no file that the job names
	if err != nil {
		panic(err)
	}
	return q
}

func ExampleDecide() {
	d, err := planner.Decide(question(), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Best.Plan)
	fmt.Println("fits:", d.Best.Fits())
	// Output:
	// dp 8 · micro_batch 64×1
	// fits: true
}

// An objective other than throughput chooses the number of devices.
func ExampleDecide_objective() {
	q := question("objective.kind=devices", "objective.rate=500e3")
	d, err := planner.Decide(q, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Goal.Devices, "of", d.Goal.Of, "devices:", d.Best.Plan)
	// Output:
	// 4 of 8 devices: dp 4 · micro_batch 128×1
}
