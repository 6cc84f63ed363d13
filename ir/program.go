package ir

import "slices"

// Program is what one pipeline stage runs, the same on every rank. Passes fill it in from the model and the
// plan; the fields below Model appear as the passes that make them run.
//
// It has four entries. init draws each parameter as its Param says; step runs Begin, then the Schedule over the
// segments' Forward and Backward functions, then Update; eval runs the Forward functions; logits runs them but for
// the last segment's, whose Logits function it runs instead.
type Program struct {
	Name     string
	Stage    int
	Plan     Plan
	Mesh     Mesh
	Recipe   Recipe
	Layouts  map[Region]Layout
	Model    *Model // its batch dim is one micro-batch of all replicas
	Classes  []Class
	Slots    []Slot
	Buckets  []Bucket
	Begin    *Func // before the first micro-batch
	Update   *Func // the step's end, over buckets
	Schedule []Action
	Arena    []ArenaRegion
	Stack    []StackPart
	Stream   int // bytes of one rank's part of a block's input
}

// Recipe is what a program needs to know of the training beside the model and the plan.
type Recipe struct {
	Optimizer string // adamw, adam or sgd
}

// Moments is the number of state tensors beside the parameters: SGD keeps a momentum, Adam two moments.
func (r Recipe) Moments() int {
	if r.Optimizer == "sgd" {
		return 1
	}
	return 2
}

// Class is how gradients of some parameters are resolved at the end of a step.
type Class struct {
	Reduce   []Axis // partial over these beside the replicas: all-reduced first
	Replicas []Axis // the replica group: summed
	Shard    []Axis // the part of Replicas whose ranks each own a part of the state (ZeRO >= 1)
	Repeat   []Axis // further axes over which the parameters are replicated: the norm counts one
}

// Copies are the replicas over which a shard's state exists several times.
func (c Class) Copies() []Axis {
	return slices.DeleteFunc(slices.Clone(c.Replicas), func(a Axis) bool { return slices.Contains(c.Shard, a) })
}

// Slot is where a parameter lies in its layer's run of its class, in elements of one rank.
type Slot struct {
	Segment, Param string
	Class          int
	Offset, Elems  int
}

// Bucket is a run of the flat space of parameters (and gradients): the class's parameters of some layers.
type Bucket struct {
	Class  int
	Offset int // in elements
	Elems  int // padded so that each owner's part is whole and aligned
	State  int // where the rank's part of each moment starts, in elements
	Chunks []Chunk
}

// Chunk is one layer's run of a class in a bucket; Offset is from the start of the flat space.
type Chunk struct {
	Segment string
	Layer   int
	Offset  int
}

// ActionKind is what a stage does in one line of its schedule.
type ActionKind byte

const (
	Forward  ActionKind = 'F' // of a micro-batch
	Backward ActionKind = 'B'
	Reduce   ActionKind = 'R' // start reducing a bucket
	Finish   ActionKind = 'U' // the update
)

// Action is one line of a schedule. A Reduce starts as soon as block (Segment, Layer) of micro-batch Micro
// has its gradients, beside the rest of that backward pass.
type Action struct {
	Kind    ActionKind
	Micro   int
	Bucket  int
	Segment string
	Layer   int
}

// ArenaRegion is a named part of a rank's memory, in bytes.
type ArenaRegion struct {
	Name         string
	Offset, Size int
}

// StackPart says how a segment's saved values lie in the activation region: one slot of Slot bytes a layer,
// from Offset.
type StackPart struct {
	Segment      string
	Offset, Slot int
}

// Places of values inside a function, beside the arena's workspace. The stream is what blocks hand on.
const (
	PlaceSlot = "slot"      // this layer's slot of the activation stack; the block's input comes first
	PlaceNext = "next"      // the next layer's slot: where its input lies
	PlaceWork = "workspace" // temporary
	PlaceDY   = "dy"        // the gradient of the block's output
	PlaceDX   = "dx"        // the gradient of the block's input
	PlaceOut  = "logits"    // the logits entry's result
	PlaceGrad = "grad"      // the accumulator of the parameter that the value is accumulated into
)

// PlaceSize is the number of bytes of a place in a segment's functions, 0 if there is none.
func (p *Program) PlaceSize(segment, place string) int {
	switch place {
	case PlaceSlot:
		for _, s := range p.Stack {
			if s.Segment == segment {
				return s.Slot
			}
		}
	case PlaceNext, PlaceDY, PlaceDX:
		return p.Stream
	case PlaceWork, PlaceOut:
		return p.Region(place).Size
	case PlaceGrad:
		return p.Region(RegionGrads).Size
	}
	return 0
}

// Names of the arena's regions, in their order.
const (
	RegionParams      = "params"
	RegionGrads       = "grads"
	RegionMoment1     = "moment1"
	RegionMoment2     = "moment2"
	RegionActivations = "activations"
	RegionWorkspace   = "workspace"
	RegionComm        = "comm"
	RegionBatch       = "batch"
	RegionLogits      = "logits"
)

// Region finds an arena region, zero if it is absent.
func (p *Program) Region(name string) ArenaRegion {
	for _, r := range p.Arena {
		if r.Name == name {
			return r
		}
	}
	return ArenaRegion{Name: name}
}

// ArenaBytes is the size of the arena.
func (p *Program) ArenaBytes() int {
	if len(p.Arena) == 0 {
		return 0
	}
	last := p.Arena[len(p.Arena)-1]
	return last.Offset + last.Size
}

// Slot finds a parameter's slot.
func (p *Program) Slot(segment, param string) (Slot, bool) {
	for _, s := range p.Slots {
		if s.Segment == segment && s.Param == param {
			return s, true
		}
	}
	return Slot{}, false
}
