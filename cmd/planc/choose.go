package main

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// decision is what the search found.
type decision struct {
	plan    ir.Plan
	predict costmodel.Predict
}

// choose searches for the job's plan.
func (a *app) choose(j *loaded) (*decision, error) {
	p := ir.SerialPlan(j.Config.Layers, 1, j.Train.Precision.IR())
	p.DP = j.cluster.Devices()
	p.MicroBatches = j.Train.GlobalBatch / p.DP
	return &decision{plan: p}, nil
}
