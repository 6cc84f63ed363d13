package interop_test

import (
	"fmt"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/deepspeed"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/planner"
)

// elems are the types of a job's precision.
var elems = map[string]ir.Elem{"f32": ir.F32, "bf16": ir.BF16, "fp16": ir.F16}

// precisionOf returns the precision that an import says.
func precisionOf(im *interop.Import) ir.Precision {
	get := func(name string, absent ir.Elem) ir.Elem {
		f, ok := im.Field("train.precision." + name)
		if !ok {
			return absent
		}
		return elems[f.Value]
	}
	compute := get("compute", ir.F32)
	p := ir.Precision{Compute: compute, Params: get("params", compute), Grads: get("grads", ir.F32),
		Reduce: get("reduce", ir.F32), Master: ir.F32, Moments: get("moments", ir.F32)}
	if f, _ := im.Field("train.precision.compute"); f.Value == "fp8" {
		p.Compute, p.FP8 = ir.BF16, true
	}
	if f, ok := im.Field("train.precision.master"); ok && f.Value == "none" {
		p.Master = p.Params
	}
	return p
}

// writeDeepSpeed returns a file with the values that say a plan.
func writeDeepSpeed(t *testing.T, p *ir.Plan) string {
	t.Helper()
	text, err := tree.Write(tree.JSON, deepspeed.Format.Values(&interop.Target{Plan: *p}))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// targetOf returns the target of an import's plan, on the devices that the file says.
func targetOf(t *testing.T, im *interop.Import, p ir.Plan) *interop.Target {
	t.Helper()
	nodes := 1
	if im.DevicesPerNode > 0 {
		nodes = im.Devices / im.DevicesPerNode
	}
	text := fmt.Sprintf("model: gpt2-124m\ntrain: {seq_len: 1024, global_batch: 64, engine: %s}\n"+
		"cluster: {node: dgx-h100, nodes: %d, devices: %d}\n", im.Engine, nodes, im.Devices/nodes)
	q, err := planner.Load("job.yaml", func(string) ([]byte, error) { return []byte(text), nil })
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return &interop.Target{Plan: p, Job: q.Job, Hardware: q.Hardware}
}
