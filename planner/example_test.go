package planner_test

import (
	"fmt"

	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
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
	q := question("objective.kind=devices", "objective.rate=600e3")
	d, err := planner.Decide(q, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Goal.Devices, "of", d.Goal.Available, "devices:", d.Best.Plan)
	// Output:
	// 4 of 8 devices: dp 4 · micro_batch 128×1
}

// A document is a decision as planc prints it with --json.
func ExampleNewDocument() {
	d, err := planner.Decide(question("train.global_batch=480"), nil)
	if err != nil {
		panic(err)
	}
	doc := planner.NewDocument(d)
	doc.FindFaster() // of near batches and fewer nodes
	fmt.Println(doc.Model.Name, "on", doc.Cluster.Devices, doc.Cluster.GPU)
	for _, a := range doc.Alternatives[:2] {
		fmt.Printf("%s: %s\n", doc.Label(a), doc.Reason(a))
	}
	for _, a := range doc.Advice() {
		fmt.Printf("%s: %s\n", a.Kind, a.Message)
	}
	// Output:
	// gpt2-124m on 8 A100-SXM-80GB
	// zero 2: less simple
	// zero 1: less simple
	// fastest: zero 2: -1.1 %, 26.0 of 71.3 GiB; --set objective.prefer=fastest
}

func ExampleDocument_AskWhyNot() {
	d, err := planner.Decide(question(), nil)
	if err != nil {
		panic(err)
	}
	doc := planner.NewDocument(d)
	doc.Explain(planner.ExplainOptions{})
	err = doc.AskWhyNot(planner.Restriction{Pins: search.Pins{"tp": {"2"}}})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%v: %s, %s\n", doc.WhyNot.Restriction, doc.WhyNot.Verdict, doc.WhyNot.Message)
	// Output:
	// tp 2, all else free: slower, tp_comm +67.3 ms
}

func ExampleRunSweep() {
	doc, err := planner.RunSweep(question(), planner.Sweep{Key: "gpus", From: 1, To: 8})
	if err != nil {
		panic(err)
	}
	for _, row := range doc.Rows {
		fmt.Printf("%d GPUs: %v, efficiency %.2f\n", row.Value, row.Plan, *row.Efficiency)
	}
	// Output:
	// 1 GPUs: dp 1 · micro_batch 128×4, efficiency 1.00
	// 2 GPUs: dp 2 · micro_batch 128×2, efficiency 1.00
	// 4 GPUs: dp 4 · micro_batch 128×1, efficiency 0.99
	// 8 GPUs: dp 8 · micro_batch 64×1, efficiency 0.97
}

// A check compares the plan that a job pins with the best one, and lists the changes that help.
func ExampleNewCheck() {
	c, err := planner.NewCheck(question("train.engine=fsdp", "plan.tp=2", "plan.zero=3", "plan.micro_batch=32"))
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Yours.Plan.Plan)
	fmt.Println(c.Message)
	fmt.Println("first edit:", c.Edits[0].Message)
	// Output:
	// dp 4 · tp 2 · sp · zero 3 · micro_batch 32×4
	// This plan is legal, fits, and is 15.4 % slower than the best that engine fsdp can run.
	// first edit: tp 2 → 1 · no sp
}
