package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/program"
)

// Program is what all ranks run: functions, which are the same everywhere, and a table for each pipeline stage. Passes
// fill it in from the model and the plan. The fields after Model are set by passes as they run.
//
// It has four entries. init draws each parameter as its Param says. step runs Begin, then the stage's Schedule over the
// blocks of its chunks, then the stage's Update. eval runs the Forward functions. logits does the same, except that it
// runs the last segment's Logits function instead of its Forward.
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

// Stage is the part of a program that belongs to one pipeline stage.
type Stage struct {
	Chunks       []Chunk
	Buckets      []Bucket
	GatherParams *Func // gathers the parameters of buckets, each before a block that uses it runs
	ScatterGrads *Func // scatters gradients, each bucket's after the backward pass of a block that adds to it
	Gather       int   // bytes of the buffer for a block's gathered parameters; double-buffered
	Scatter      int   // bytes of the buffer for a block's gradients; double-buffered
	Update       *Func // the end of the step, over buckets
	Schedule     []Action
	Arena        []ArenaRegion
}

// Chunk is a run of the model's blocks on one stage. A stage has several chunks if stages are interleaved.
//
// From its forward to its backward pass, or to the second part of a split one, a micro-batch of the chunk owns one of
// Buffers activation buffers. It contains what each layer saves, preceded by the layer's input.
type Chunk struct {
	Index   int // in the model's order, over all stages
	Runs    []Run
	Offset  int // of the first buffer, in the activation region
	Size    int // bytes of a buffer
	Buffers int // micro-batches in flight
}

// Run is Count layers of a segment, starting with layer From. The first starts at Offset of the chunk's buffer, each
// Stride bytes after the one before it.
//
// A run that is recomputed saves less. Remat: its layers are the segment's Remat. Split: they also save a part of their
// input, which is saved nowhere else, because streams pass from layer to layer through the stage's spare memory. Every:
// only the input of each Every-th layer is saved, Stride bytes after the one before it. Before the backward functions
// of such a group, its forward functions are run again; what they save and their streams are in the spare memory, Inner
// bytes per layer.
type Run struct {
	Segment        string
	From, Count    int
	Offset, Stride int
	Remat, Split   bool
	Every, Inner   int // 0 if each layer's input is saved
}

// SavedParts returns how many parts of a buffer the run takes: one per layer, or one per group.
func (r *Run) SavedParts() int {
	if r.Every > 0 {
		return (r.Count + r.Every - 1) / r.Every
	}
	return r.Count
}

// Recipe is what a program needs to know of the training in addition to the model and the plan.
type Recipe struct {
	Optimizer  string // adamw, adam or sgd
	NoMomentum bool   // sgd's momentum is 0: there is no buffer for it
	// updated parameters are rounded stochastically; they are bf16, and there is no master copy
	StochasticRounding bool
	// weights by which one GEMM can multiply lie side by side; see pass sides
	Sides         bool
	VocabMultiple int // see [Mesh]
	// a stage posts the receive of a pass before the compute of the pass before it; see ReceiveBuffer
	PrepostReceives bool
}

// noMomentum is the text of a recipe without a momentum buffer.
const noMomentum = " momentum=0"

// stochasticRounding is the text of a recipe with stochastic rounding.
const stochasticRounding = " rounding=stochastic"

// weightsAside is the text of a recipe with weights side by side.
const weightsAside = " weights=side_by_side"

// vocabMultiple is the text of a recipe before its VocabMultiple.
const vocabMultiple = " vocab_multiple="

// preposted is the text of a recipe with PrepostReceives.
const preposted = " receives=preposted"

// maxVocabMultiple keeps products of sizes far from overflow.
const maxVocabMultiple = 1 << 16

// String returns the recipe's text form.
func (r Recipe) String() string {
	s := "optimizer=" + r.Optimizer
	if r.NoMomentum {
		s += noMomentum
	}
	if r.StochasticRounding {
		s += stochasticRounding
	}
	if r.Sides {
		s += weightsAside
	}
	if r.VocabMultiple > 0 {
		s += vocabMultiple + strconv.Itoa(r.VocabMultiple)
	}
	if r.PrepostReceives {
		s += preposted
	}
	return s
}

func (r *Recipe) parse(s string) error {
	s, r.PrepostReceives = strings.CutSuffix(s, preposted)
	s, multiple, padded := strings.Cut(s, vocabMultiple)
	if padded {
		n, err := strconv.Atoi(multiple)
		if err != nil || n < 1 || n > maxVocabMultiple {
			return fmt.Errorf("recipe: vocab_multiple %q must be a number from 1 to %d", multiple, maxVocabMultiple)
		}
		r.VocabMultiple = n
	}
	s, r.Sides = strings.CutSuffix(s, weightsAside)
	s, r.StochasticRounding = strings.CutSuffix(s, stochasticRounding)
	s, r.NoMomentum = strings.CutSuffix(s, noMomentum)
	s, ok := strings.CutPrefix(s, "optimizer=")
	r.Optimizer = s
	if !ok {
		return fmt.Errorf("recipe %q must be optimizer=NAME", s)
	}
	return checkName(s)
}

// Moments returns the number of state tensors of each parameter: two moments for Adam, the momentum for SGD unless that
// is 0.
func (r Recipe) Moments() int {
	switch {
	case r.Optimizer != "sgd":
		return 2
	case r.NoMomentum:
		return 0
	}
	return 1
}

// ReceiveBuffer returns the bytes of a stage's buffer for a preposted receive of a stream, for a plan of pp stages. A
// pass copies its message from there when it begins, and the receive of the next pass is posted. The message cannot be
// received in its final location, which may be in use until the previous pass ends.
func (r Recipe) ReceiveBuffer(pp, stream int) int {
	if !r.PrepostReceives || pp == 1 {
		return 0
	}
	return stream
}

// Class says how gradients of some parameters are resolved at the end of a step.
type Class struct {
	Reduce        []Axis // further axes over which gradients are partial: all-reduced first
	Replicas      []Axis // the replica group: gradients are summed over it
	Shard         []Axis // the part of Replicas whose ranks each own a part of the state (ZeRO >= 1)
	Repeat        []Axis // further axes over which the parameters are replicated: the norm counts one copy
	ShardedGrads  bool   // ZeRO >= 2: gradients are scattered over Shard after each micro-batch
	ShardedParams bool   // ZeRO 3: parameters are sharded over Shard, and gathered for each use
	TiedStages    bool   // tied parameters on the first and the last stage: gradients are summed over both
}

// Copies returns the replicas over which a shard's state exists several times.
func (c Class) Copies() []Axis {
	return slices.DeleteFunc(slices.Clone(c.Replicas), func(a Axis) bool { return slices.Contains(c.Shard, a) })
}

// Slot is the location of a parameter in its layer's run of its class, in elements of one rank. A tied parameter has a
// slot of its own if its owner is on another stage.
type Slot struct {
	Segment, Param string
	Class          int
	Offset, Elems  int
}

// Bucket is a run of the flat space of parameters and gradients: the class's parameters of some layers, or of one layer
// if the class resolves gradients after each micro-batch. Gradients (from ZeRO 2 on) and parameters (at ZeRO 3) are
// located at State, as moments are; otherwise at Offset.
type Bucket struct {
	Class  int
	Offset int // in elements
	Elems  int // padded so that each owner's part is whole and aligned
	State  int // start of the rank's part of each moment, in elements
	Pieces []Piece
}

// Params returns the start of the bucket, or of the rank's part of it, in the region of parameters, in elements.
func (b Bucket) Params(p Plan) int {
	if p.Zero >= 3 {
		return b.State
	}
	return b.Offset
}

// Grads returns the start of the bucket, or of the rank's part of it, in the region of gradients, in elements.
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
	Forward    = program.Forward
	Backward   = program.Backward
	WeightGrad = program.WeightGrad
	Finish     = program.Finish
)

// ArenaRegion is a named part of a rank's memory, in bytes.
type ArenaRegion struct {
	Name         string
	Offset, Size int
}

// SavedPart is how much a layer of a segment, or of its recomputed variant, saves for its backward pass in addition to
// its input, in bytes. If Weights reads the gradient of the layer's output, that is saved after those.
type SavedPart struct {
	Segment  string
	Bytes    int
	Gradient bool
}

// Kind returns the variant of a segment to which a run's layers belong.
func (p *Program) Kind(r *Run) *Segment {
	s := p.Model.Segment(r.Segment)
	if r.Remat {
		return s.Remat
	}
	return s
}

// Uses reports whether a layer of any stage belongs to that variant of a segment. Without stages, all variants are
// used.
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

// Spare returns the offset in the activation region after the chunks' buffers. The memory there is for groups that are
// run again, and for streams that no buffer saves.
func (s *Stage) Spare() int {
	end := 0
	for _, c := range s.Chunks {
		end = max(end, c.Offset+c.Buffers*c.Size)
	}
	return end
}

// Locations of values inside a function, in addition to the arena's workspace. The stream is the value that blocks pass
// to the next block.
const (
	PlaceX    = "x"         // the block's input
	PlaceOut  = "out"       // the block's output: the next block's input
	PlaceSlot = "slot"      // what this layer saves for backward and its second part
	PlaceWork = "workspace" // temporary values
	PlaceDY   = "dy"        // the gradient of the block's output
	PlaceDX   = "dx"        // the gradient of the block's input
	PlaceHead = "logits"    // the result of the logits entry
	PlaceGrad = "grad"      // the accumulator of the parameter that the value is accumulated into
)

// PlaceSize returns the number of bytes of a location in a segment's functions, 0 if there is none.
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
		if len(p.Stages) == 0 { // a text without arenas
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

// KeepsGradient reports whether layers of a segment save the gradient of their output for Weights.
func (p *Program) KeepsGradient(segment string) bool {
	return slices.ContainsFunc(p.Saved, func(s SavedPart) bool { return s.Segment == segment && s.Gradient })
}

// SavedBytes returns the bytes that a layer of a run saves in addition to its input: what its functions save, and the
// gradient of its output if Weights reads it. Groups that are run again do not save that gradient, because both parts
// of their backward pass run at once.
func (p *Program) SavedBytes(r *Run) int {
	s := p.Kind(r)
	n := p.PlaceSize(s.Name, PlaceSlot)
	if r.Every == 0 && p.KeepsGradient(s.Name) {
		n += p.Stream
	}
	return n
}

// StreamName is the input of a block that the previous block returned.
const StreamName = "x"

// Names of the arena's regions, in order.
const (
	RegionParams      = "params"
	RegionGrads       = "grads"
	RegionMaster      = "master" // the optimizer's copy of its part of the parameters, if it has another type
	RegionMoment1     = "moment1"
	RegionMoment2     = "moment2"
	RegionActivations = "activations"
	RegionWorkspace   = "workspace"
	RegionComm        = "comm"
	RegionBatch       = "batch"
	RegionLogits      = "logits"
)

// Region returns an arena region, with size zero if it is absent.
func (s *Stage) Region(name string) ArenaRegion {
	for _, r := range s.Arena {
		if r.Name == name {
			return r
		}
	}
	return ArenaRegion{Name: name}
}

// ArenaBytes returns the size of the arena.
func (s *Stage) ArenaBytes() int {
	if len(s.Arena) == 0 {
		return 0
	}
	last := s.Arena[len(s.Arena)-1]
	return last.Offset + last.Size
}

// ArenaBytes returns the size of the fullest stage's arena.
func (p *Program) ArenaBytes() int {
	n := 0
	for i := range p.Stages {
		n = max(n, p.Stages[i].ArenaBytes())
	}
	return n
}

// Slot returns a parameter's slot.
func (p *Program) Slot(segment, param string) (Slot, bool) {
	for _, s := range p.Slots {
		if s.Segment == segment && s.Param == param {
			return s, true
		}
	}
	return Slot{}, false
}

// LayerBuckets returns the buckets of a stage that a layer's functions use: those of its own parameters, and those of
// the owners of tied parameters without a slot of their own.
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

// Weights, Published and Share describe where a model's parameters are in the files that other tools exchange:
// safetensors with Hugging Face's names and layouts. Generated code contains them as a table, so that the runtime needs
// to know no family.
type (
	Weights   = program.Weights
	Published = program.Published
	Share     = program.Share
)
