package rank

import (
	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/tensors"
)

// Rank is the state of one rank. Generated code reads the exported fields and passes the rank to the functions of
// package runtime. All other fields belong to this package and to package driver.
type Rank struct {
	Program       *Program
	tensors.Store        // the rank's number, coordinate, stage and arena
	Device        Device // device that has a copy of the arena and does the work; nil: this CPU
	Pass
	Outcome

	poison   bool
	exec     *executor
	updates  *updates      // bucket updates that overlap the next forward pass; nil: none
	groups   []*comm.Group // of Program.Groups, for collectives on the rank's own goroutine
	world    *comm.World
	jobQueue // of the rank's communication goroutine
	tracks
	buffers
	Experts  expertCounts
	OnChoice func(*Choice) // called with each choice of experts; nil except in tests
}

// Pass is what a forward or backward pass depends on in addition to the parameters and the batch.
type Pass struct {
	Training  bool      // dropout is active
	StepID    int       // optimizer step, counted from 1; part of the key of dropout
	Pos       int       // position whose logits Segment.Logits computes
	Seed      uint64    // seed of dropout
	Scale     float64   // loss scale, which the gradients contain until they are multiplied by Clip
	Hyper     Hyper     // hyperparameters of the step
	AfterSkip AfterSkip // replaces Scale and Hyper.T if the step before is skipped

	EvalFirst int // 1 + first sample of the evaluation batch; 0: no evaluation
	counted   int // unmasked tokens of the global batch if the host has counted them; else 0
}

// Outcome is what a step computes in addition to tensors.
type Outcome struct {
	Tokens  float64 // unmasked tokens of the global batch, set by CountTokens
	LossSum float64 // sum of the losses of this replica's unmasked tokens since the runtime last cleared it
	Norm    float64 // global gradient norm before clipping
	Clip    float64 // factor by which accumulated gradients are multiplied
	Skip    bool    // this step's update is skipped on all ranks

	result  StepResult // of the last finished step, from the device
	reduced bool       // LossSum is the sum over all replicas: ReduceLoss has run
}

// jobQueue is the work of a rank's communication goroutine.
type jobQueue struct {
	buckets []bucket                      // of Stage.Buckets
	jobs    chan job                      // jobs to do
	kinds   [kinds]func(*Rank, int) error // function of each kind of job
}

// buffers are a rank's own memory outside of the arena, and the arena's scratch.
type buffers struct {
	converted any        // []F: buffer of conversionBuffer
	Pair      [2]float64 // for reductions of a few numbers
	Scratch   []float32  // the arena's Scratch; see Widen
	Scratched int        // elements of scratch in use
}

// Hyper holds the optimizer's hyperparameters of one step.
type Hyper struct {
	LR, Beta1, Beta2, Eps, WeightDecay, Momentum, ClipNorm float64
	BiasRate                                               float64
	T                                                      int // number of this update, counted from 1
}
