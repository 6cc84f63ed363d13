package ir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/runtime/program"
)

// Program is what all ranks run: functions, which are the same everywhere, and a table for each pipeline stage. Passes
// fill it in from the model and the plan; the fields below Model appear as the passes that make them run.
//
// It has four entries. init draws each parameter as its Param says; step runs Begin, then the stage's Schedule over
// the blocks of its chunks, then the stage's Update; eval runs the Forward functions; logits runs them but for the
// last segment's, whose Logits function it runs instead.
type Program struct {
	Name    string
	Plan    Plan
	Mesh    Mesh
	Recipe  Recipe
	Layouts map[Region]Layout
	Model   *Model // its batch dim is one micro-batch of all replicas
	Classes []Class
	Slots   []Slot
	Begin   *Func // before the first micro-batch
	Saved   []SavedPart
	Stream  int // bytes of one rank's part of a block's input
	Stages  []Stage
}

// Stage is what one pipeline stage has of its own.
type Stage struct {
	Chunks   []Chunk
	Buckets  []Bucket
	Fetch    *Func // gathers the parameters of buckets, each before a block that uses it runs
	Resolve  *Func // scatters gradients, each bucket's after the backward pass of a block that adds to it
	Gather   int   // bytes of the buffer for a block's gathered parameters; there are two, in turn
	Scatter  int   // bytes of the buffer for a block's gradients; likewise
	Update   *Func // the step's end, over buckets
	Schedule []Action
	Arena    []ArenaRegion
}

// Chunk is a run of the model's blocks on one stage; a stage has several when stages are interleaved.
//
// From its forward to its backward pass, the second part of a split one, a micro-batch of the chunk owns one of Buffers
// activation buffers: what each layer saves, its input before that.
type Chunk struct {
	Index   int // in the model's order, over all stages
	Runs    []Run
	Offset  int // of the first buffer, in the activation region
	Size    int // bytes of a buffer
	Buffers int // micro-batches in flight
}

// Run is Count layers of a segment, from layer From on. The first begins at Offset of the chunk's buffer, each Stride
// bytes after the one before it.
//
// A run that is recomputed keeps less. Remat: its layers are the segment's Remat. Split: in addition to, these save a
// part of their input, which is nowhere else, since streams pass from layer to layer through the stage's spare memory.
// Every: only the input of each Every-th layer is kept, Stride bytes after the one before it; before the backward
// functions of such a group its forward functions are run again, with what they save and their streams in the spare
// memory, Inner bytes a layer.
type Run struct {
	Segment        string
	From, Count    int
	Offset, Stride int
	Remat, Split   bool
	Every, Inner   int // 0 where each layer's input is kept
}

// Kept is how many parts of a buffer the run takes: one a layer, or one a group.
func (r *Run) Kept() int {
	if r.Every > 0 {
		return (r.Count + r.Every - 1) / r.Every
	}
	return r.Count
}

// Recipe is what a program needs to know of the training beside the model and the plan.
type Recipe struct {
	Optimizer          string // adamw, adam or sgd
	NoMomentum         bool   // sgd's momentum is 0: there is no buffer for it
	StochasticRounding bool   // updated parameters are rounded by chance; they are bf16, and there is no master copy
}

// noMomentum is what the text of a recipe without a momentum buffer adds.
const noMomentum = " momentum=0"

// byChance is what a recipe that rounds so says of it.
const byChance = " rounding=stochastic"

// String is the recipe's text form.
func (r Recipe) String() string {
	s := "optimizer=" + r.Optimizer
	if r.NoMomentum {
		s += noMomentum
	}
	if r.StochasticRounding {
		s += byChance
	}
	return s
}

func (r *Recipe) parse(s string) error {
	s, r.StochasticRounding = strings.CutSuffix(s, byChance)
	s, r.NoMomentum = strings.CutSuffix(s, noMomentum)
	s, ok := strings.CutPrefix(s, "optimizer=")
	r.Optimizer = s
	if !ok {
		return fmt.Errorf("recipe %q, want optimizer=NAME", s)
	}
	return checkName(s)
}

// Moments is the number of state tensors of each parameter: Adam keeps two moments, SGD its momentum unless that is 0.
func (r Recipe) Moments() int {
	switch {
	case r.Optimizer != "sgd":
		return 2
	case r.NoMomentum:
		return 0
	}
	return 1
}

// Class is how gradients of some parameters are resolved at the end of a step.
type Class struct {
	Reduce   []Axis // partial over these beside the replicas: all-reduced first
	Replicas []Axis // the replica group: summed
	Shard    []Axis // the part of Replicas whose ranks each own a part of the state (ZeRO >= 1)
	Repeat   []Axis // further axes over which the parameters are replicated: the norm counts one
	Each     bool   // ZeRO >= 2: gradients are scattered over Shard after each micro-batch
	Fetch    bool   // ZeRO 3: parameters lie scattered over Shard, and are gathered for each use
	Ends     bool   // parameters of the first stage that the last one holds too: their gradients are summed over both
}

// Copies are the replicas over which a shard's state exists several times.
func (c Class) Copies() []Axis {
	return slices.DeleteFunc(slices.Clone(c.Replicas), func(a Axis) bool { return slices.Contains(c.Shard, a) })
}

// Slot is where a parameter lies in its layer's run of its class, in elements of one rank. A tied parameter has
// one where its owner is on another stage.
type Slot struct {
	Segment, Param string
	Class          int
	Offset, Elems  int
}

// Bucket is a run of the flat space of parameters and gradients: the class's parameters of some layers, of one layer
// where the class resolves each micro-batch. From ZeRO 2 on gradients, at ZeRO 3 parameters too, lie at State, as
// moments do; else at Offset.
type Bucket struct {
	Class  int
	Offset int // in elements
	Elems  int // padded so that each owner's part is whole and aligned
	State  int // where the rank's part of each moment starts, in elements
	Pieces []Piece
}

// Params is where the bucket, or the rank's part of it, begins in the region of parameters, in elements.
func (b Bucket) Params(p Plan) int {
	if p.Zero >= 3 {
		return b.State
	}
	return b.Offset
}

// Grads is likewise where its gradients begin.
func (b Bucket) Grads(p Plan) int {
	if p.Zero >= 2 {
		return b.State
	}
	return b.Offset
}

// Piece is one layer's run of a class in a bucket; Offset is from the start of the flat space.
type Piece struct {
	Segment string
	Layer   int
	Offset  int
}

// Action is one step of a stage's schedule; ActionKind is what the stage does in it.
type (
	Action     = program.Action
	ActionKind = program.ActionKind
)

// The kinds of actions.
const (
	Forward  = program.Forward
	Backward = program.Backward
	Weigh    = program.WeightGrad
	Finish   = program.Finish
)

// ArenaRegion is a named part of a rank's memory, in bytes.
type ArenaRegion struct {
	Name         string
	Offset, Size int
}

// SavedPart is how much a layer of a segment, or of its recomputed variant, saves for its backward pass beside its
// input, in bytes. Where Weights reads the gradient of the layer's output, that is kept too, behind those.
type SavedPart struct {
	Segment  string
	Bytes    int
	Gradient bool
}

// Kind is the variant of a segment that a run's layers are.
func (p *Program) Kind(r *Run) *Segment {
	s := p.Model.Segment(r.Segment)
	if r.Remat {
		return s.Remat
	}
	return s
}

// Uses tells whether a layer of any stage is of that variant of a segment; before there are stages, all are.
func (p *Program) Uses(s *Segment) bool {
	for i := range p.Stages {
		for _, c := range p.Stages[i].Chunks {
			for j := range c.Runs {
				if p.Kind(&c.Runs[j]) == s {
					return true
				}
			}
		}
	}
	return len(p.Stages) == 0
}

// Spare is the offset in the activation region of what lies behind the chunks' buffers: where groups are run again, and
// streams that no buffer keeps.
func (s *Stage) Spare() int {
	end := 0
	for _, c := range s.Chunks {
		end = max(end, c.Offset+c.Buffers*c.Size)
	}
	return end
}

// Places of values inside a function, beside the arena's workspace. The stream is what blocks hand on.
const (
	PlaceX    = "x"         // the block's input
	PlaceOut  = "out"       // the block's output: the next block's input
	PlaceSlot = "slot"      // what this layer saves for backward, and that for its second part
	PlaceWork = "workspace" // temporary
	PlaceDY   = "dy"        // the gradient of the block's output
	PlaceDX   = "dx"        // the gradient of the block's input
	PlaceHead = "logits"    // the logits entry's result
	PlaceGrad = "grad"      // the accumulator of the parameter that the value is accumulated into
)

// PlaceSize is the number of bytes of a place in a segment's functions, 0 if there is none.
func (p *Program) PlaceSize(segment, place string) int {
	switch place {
	case PlaceSlot:
		for _, s := range p.Saved {
			if s.Segment == segment {
				return s.Bytes
			}
		}
	case PlaceX, PlaceOut, PlaceDY, PlaceDX:
		return p.Stream
	case PlaceWork, PlaceHead:
		if len(p.Stages) == 0 { // a text whose arenas are missing
			return 0
		}
		return p.Stages[0].Region(place).Size
	case PlaceGrad:
		n := 0
		for i := range p.Stages {
			n = max(n, p.Stages[i].Region(RegionGrads).Size, p.Stages[i].Scatter)
		}
		return n
	}
	return 0
}

// KeepsGradient tells whether layers of a segment keep the gradient of their output for Weights.
func (p *Program) KeepsGradient(segment string) bool {
	return slices.ContainsFunc(p.Saved, func(s SavedPart) bool { return s.Segment == segment && s.Gradient })
}

// SavedBytes is what a layer of a run keeps beside its input: what its functions save, and the gradient of its output
// if Weights reads it. Groups that are run again do without that: both parts of their backward pass run at once.
func (p *Program) SavedBytes(r *Run) int {
	s := p.Kind(r)
	n := p.PlaceSize(s.Name, PlaceSlot)
	if r.Every == 0 && p.KeepsGradient(s.Name) {
		n += p.Stream
	}
	return n
}

// StreamName is the input of a block that the block before it returned.
const StreamName = "x"

// Names of the arena's regions, in their order.
const (
	RegionParams      = "params"
	RegionGrads       = "grads"
	RegionMaster      = "master" // the optimizer's copy of its part of the parameters, where their type is another
	RegionMoment1     = "moment1"
	RegionMoment2     = "moment2"
	RegionActivations = "activations"
	RegionWorkspace   = "workspace"
	RegionComm        = "comm"
	RegionBatch       = "batch"
	RegionLogits      = "logits"
)

// Region finds an arena region, zero if it is absent.
func (s *Stage) Region(name string) ArenaRegion {
	for _, r := range s.Arena {
		if r.Name == name {
			return r
		}
	}
	return ArenaRegion{Name: name}
}

// ArenaBytes is the size of the arena.
func (s *Stage) ArenaBytes() int {
	if len(s.Arena) == 0 {
		return 0
	}
	last := s.Arena[len(s.Arena)-1]
	return last.Offset + last.Size
}

// ArenaBytes is the size of the fullest stage's arena.
func (p *Program) ArenaBytes() int {
	n := 0
	for i := range p.Stages {
		n = max(n, p.Stages[i].ArenaBytes())
	}
	return n
}

// Fullest is the first of the stages with the largest arena.
func (p *Program) Fullest() int {
	n := 0
	for i := range p.Stages {
		if p.Stages[i].ArenaBytes() > p.Stages[n].ArenaBytes() {
			n = i
		}
	}
	return n
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

// LayerBuckets are the buckets of a stage that a layer's functions use: those of its own parameters, and of the
// parameters that its tied ones are where these have no slot of their own.
func (p *Program) LayerBuckets(s *Stage, segment string, layer int) []int {
	var out []int
	add := func(segment string, layer int, slot Slot) {
		for i, b := range s.Buckets {
			if b.Class != slot.Class || slices.Contains(out, i) {
				continue
			}
			if slices.ContainsFunc(b.Pieces, func(x Piece) bool { return x.Segment == segment && x.Layer == layer }) {
				out = append(out, i)
			}
		}
	}
	for _, w := range p.Model.Segment(segment).Forward.Weights() {
		if slot, ok := p.Slot(segment, w.Name); ok {
			add(segment, layer, slot)
			continue
		}
		owner, name, _ := strings.Cut(w.Param.Tied, ".")
		slot, _ := p.Slot(owner, name)
		add(owner, 0, slot)
	}
	return out
}
