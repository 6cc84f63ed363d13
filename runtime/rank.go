package runtime

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/num"
)

// Rank is one rank's state. Generated code reads the exported fields and calls the functions of this
// package on it; everything else belongs to the runtime.
type Rank struct {
	Program *Program
	ID      int
	Coord   map[string]int // of each atom of the mesh

	Stage  *Stage // of Program.Stages
	Arena  []byte // Stage.Arena.Size bytes
	Device Device // that has the arena's twin and does the work; nil: this CPU

	Training bool   // dropout is on
	StepID   int    // 1 in the first optimizer step; keys dropout
	Pos      int    // what Program.Logits looks at
	Seed     uint64 // of dropout

	Tokens  float64 // unmasked tokens of the global batch, set by CountTokens
	LossSum float64 // this replica's sum of unmasked token losses since the runtime last cleared it
	Norm    float64 // global gradient norm before clipping
	Clip    float64 // factor of the accumulated gradients
	Scale   float64 // of the loss: its gradient's, until Clip divides by it
	Skip    bool    // this step's update is skipped on all ranks
	Hyper   Hyper   // the step's rates

	AfterSkip AfterSkip // what Scale and Hyper.T are if the step before is skipped

	poison     bool
	exec       *executor
	updates    *updates                      // that the next step's forward pass runs beside; nil: none
	groups     []*comm.Group                 // of Program.Groups, on the rank's own line
	buckets    []bucket                      // of Program.Buckets
	jobs       chan job                      // for the communication line; nil where no bucket needs it
	kinds      [kinds]func(*Rank, int) error // what a job of each kind does to a bucket
	converted  any                           // []F for a few blocks of what is kept in other types; see blocks
	world      *comm.World
	pair       [2]float64 // for reductions of a few numbers
	scratch    []float32  // the arena's Scratch; see Wide
	scratched  int        // of it, what is in use
	experts    expertCounts
	onChoice   func(*Choice) // is told of choices of experts; nil but in tests
	evalFirst  int           // 1 and the number of the first sample of the batch that is evaluated; 0: none is
	counted    int           // unmasked tokens of the global batch, where the host has counted them; else 0
	stepResult StepResult    // of the step that ended last
	reduced    bool          // LossSum is of all replicas: ReduceLoss ran since it was cleared
}

// Float is the element type of a program's tensors.
type Float interface{ float32 | float64 }

// Hyper is what the optimizer reads in one step.
type Hyper struct {
	LR, Beta1, Beta2, Eps, WeightDecay, Momentum, ClipNorm float64
	BiasRate                                               float64
	T                                                      int // updates done before this one, plus 1
}

// View is n elements of the rank's arena from byte offset off. It panics where that leaves the arena:
// the memory plan was wrong.
func View[T num.Stored | int32](r *Rank, off, n int) []T {
	if n == 0 {
		return nil
	}
	var z T
	_ = r.Arena[off+n*int(unsafe.Sizeof(z))-1]
	return unsafe.Slice((*T)(unsafe.Pointer(&r.Arena[off])), n)
}
