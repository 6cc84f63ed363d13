package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Precision is the type of each kind of state.
type Precision struct {
	Compute, Params, Grads, Reduce, Master, Moments Elem
	// matmuls of blocks with their weights round their operands to FP8; Compute is bf16
	FP8 bool
}

// FullPrecision returns a precision with one type for everything.
func FullPrecision(e Elem) Precision {
	return Precision{Compute: e, Params: e, Grads: e, Reduce: e, Master: e, Moments: e}
}

// BytesPerParam returns the bytes per parameter of weights, gradients, master copy (if it differs from the weights) and
// two moments.
func (p Precision) BytesPerParam() int {
	return p.Params.Size() + p.Grads.Size() + p.MasterSize() + 2*p.Moments.Size()
}

// MasterSize returns the bytes per element of the master copy, 0 if the parameters serve as master copy.
func (p Precision) MasterSize() int {
	if p.Master == p.Params {
		return 0
	}
	return p.Master.Size()
}

// Plan is the decision, in normal form: a field that does not apply is 1, 0, "none" or "". Plans are comparable.
type Plan struct {
	DP, TP, PP, CP, EP, ETP  int
	VPP                      int
	SP                       bool
	CPKind                   string
	Zero, ZeroGroup          int
	MicroBatch, MicroBatches int
	Schedule, Recompute      string
	// number of recomputed blocks at the start of each chunk, 0 if Recompute is none; see RecomputeRules
	RecomputeLayers, RecomputeEvery int
	RecomputeSplit                  bool
	StageLayers                     string // block counts of the chunks, comma-separated
	AxisOrder                       string // axes, the fastest-varying first, comma-separated
	Offload                         string // comma-separated
	MoESlack                        float64
	Precision                       Precision
}

// SerialPlan returns the plan of one rank.
func SerialPlan(layers, batch int, p Precision) Plan {
	return Plan{DP: 1, TP: 1, PP: 1, CP: 1, EP: 1, ETP: 1, VPP: 1, CPKind: "none", ZeroGroup: 1,
		MicroBatch: batch, MicroBatches: 1, Schedule: "none", Recompute: "none", RecomputeEvery: 1,
		StageLayers: fmt.Sprint(layers), AxisOrder: "tp,dp", Precision: p}
}

// Ranks returns the number of ranks that the plan uses.
func (p Plan) Ranks() int { return p.DP * p.CP * p.TP * p.PP }

// Replicas returns the number of ranks that have the same parameters and process different tokens: different sequences
// along dp, different parts of a sequence along cp.
func (p Plan) Replicas() int { return p.DP * p.CP }

// LargestChunk returns the largest number of blocks of a chunk; 0 if stage_layers is not a list of counts.
func (p Plan) LargestChunk() int {
	largest := 0
	for _, w := range strings.Split(p.StageLayers, ",") {
		if n, err := strconv.Atoi(w); err == nil {
			largest = max(largest, n)
		}
	}
	return largest
}

// StageOf returns the stage of a chunk in model order: chunks go around the stages, or down and back with zb-v.
func (p Plan) StageOf(chunk int) int {
	if p.Schedule == "zb-v" && chunk >= p.PP {
		return 2*p.PP - 1 - chunk
	}
	return chunk % p.PP
}

// Splits reports whether the backward pass is split in two: gradients of activations, for which the previous stages
// wait, and gradients of parameters, which can run later.
func (p Plan) Splits() bool { return p.Schedule == "zb-h1" || p.Schedule == "zb-v" }

// String returns the plan in one line: the fields that are not at their neutral value, and the micro-batches. If no
// schedule is printed, a pipeline's schedule is 1f1b, or interleaved if stages have several chunks.
func (p Plan) String() string {
	var parts []string
	degree := func(name string, n int) {
		if n > 1 {
			parts = append(parts, fmt.Sprintf("%s %d", name, n))
		}
	}
	parts = append(parts, fmt.Sprintf("dp %d", p.DP))
	degree("tp", p.TP)
	degree("pp", p.PP)
	if p.VPP > 1 {
		parts[len(parts)-1] += fmt.Sprintf(" × vpp %d", p.VPP)
	}
	if p.CP > 1 {
		parts = append(parts, fmt.Sprintf("cp %d %s", p.CP, p.CPKind))
	}
	degree("ep", p.EP)
	degree("etp", p.ETP)
	if p.Schedule == "gpipe" || p.Splits() {
		parts = append(parts, p.Schedule)
	}
	if p.SP {
		parts = append(parts, "sp")
	}
	if p.Zero > 0 {
		parts = append(parts, fmt.Sprintf("zero %d", p.Zero))
		if p.ZeroGroup < p.Replicas() {
			parts[len(parts)-1] += fmt.Sprintf(" in groups of %d", p.ZeroGroup)
		}
	}
	parts = append(parts, fmt.Sprintf("micro_batch %d×%d", p.MicroBatch, p.MicroBatches))
	if p.Recompute != "none" {
		parts = append(parts, p.RecomputeWords())
	}
	return strings.Join(parts, " · ")
}

// RecomputeWords describes what the plan recomputes: "recompute full 4 blocks every 2 split". The number of blocks is
// omitted if it is all of them.
func (p Plan) RecomputeWords() string {
	s := "recompute " + p.Recompute
	if p.Recompute == "none" {
		return s
	}
	if p.RecomputeLayers < p.LargestChunk() {
		s += fmt.Sprintf(" %d block", p.RecomputeLayers)
		if p.RecomputeLayers != 1 {
			s += "s"
		}
	}
	if p.RecomputeEvery > 1 {
		s += fmt.Sprintf(" every %d", p.RecomputeEvery)
	}
	if p.RecomputeSplit {
		s += " split"
	}
	return s
}

// Mesh returns the plan's mesh for a model with kvHeads K/V heads (0: a model without attention). If tp exceeds the K/V
// heads, it is the product of rep (fastest) and kv, so that K/V are replicated over rep. If dp exceeds the plan's
// zero_group, it is the product of inner and outer, so that state is sharded over inner. vocabMultiple is the mesh's
// VocabMultiple.
func (p Plan) Mesh(kvHeads, vocabMultiple int) (Mesh, error) {
	size := map[string]int{"dp": p.DP, "tp": p.TP, "pp": p.PP, "cp": p.CP}
	var view, fine View
	for _, a := range strings.Split(p.AxisOrder, ",") {
		n, ok := size[a]
		if !ok {
			continue
		}
		delete(size, a)
		view = append(view, Atom{Axis(a), n})
		switch {
		case a == "tp" && kvHeads > 0 && n > kvHeads:
			if n%kvHeads != 0 {
				return Mesh{}, fmt.Errorf("tp %d must be a multiple of the %d K/V heads", n, kvHeads)
			}
			fine = append(fine, Atom{"rep", n / kvHeads}, Atom{"kv", kvHeads})
		case a == "dp" && p.sharedReplicas() > 1 && p.sharedReplicas() < n:
			k := p.sharedReplicas()
			if n%k != 0 {
				return Mesh{}, fmt.Errorf("dp %d must be a multiple of zero_group %d%s", n, p.ZeroGroup,
					map[bool]string{true: fmt.Sprintf(" / cp %d", p.CP)}[k < p.ZeroGroup])
			}
			fine = append(fine, Atom{"inner", k}, Atom{"outer", n / k})
		case a == "cp" && p.CPKind == "heads" && kvHeads > 0:
			kv := p.headContexts(kvHeads)
			if n%kv != 0 {
				return Mesh{}, fmt.Errorf("cp %d must be a multiple or a divisor of the %d K/V heads of a rank", n, kv)
			}
			fine = append(fine, Atom{"cp_rep", n / kv}, Atom{"cp_kv", kv})
		default:
			fine = append(fine, Atom{Axis(a), n})
		}
	}
	for _, a := range []string{"dp", "tp", "pp", "cp"} {
		if size[a] > 1 {
			return Mesh{}, fmt.Errorf("axis order %q does not contain %s", p.AxisOrder, a)
		}
	}
	experts, err := p.expertPieces(view)
	if err != nil {
		return Mesh{}, err
	}
	m, err := withExperts(experts, fine, view)
	m.VocabMultiple = vocabMultiple
	return m, err
}

// Layouts returns the layout of each region: which dims the plan splits over which axes of the mesh. Axes that the mesh
// does not have split nothing.
func (p Plan) Layouts(m Mesh) map[Region]Layout {
	keep := func(axes ...Axis) []Axis { return have(m, axes...) }
	batch, tp, seq := keep("dp"), keep("tp"), p.contexts(m)
	stream := Layout{Batch: batch, Seq: seq}
	if p.SP {
		stream[Seq] = slices.Concat(seq, tp)
	}
	heads := Layout{Batch: batch, Seq: seq, Head: tp}
	if m.Has("rep") {
		heads[Head], heads[Group] = keep("kv"), keep("rep")
	}
	layouts := map[Region]Layout{
		Norm: stream, Attention: heads,
		MLP:      {Batch: batch, Seq: seq, FFN: tp},
		VocabR:   {Batch: batch, Seq: seq, Vocab: tp},
		Dispatch: p.dispatchLayout(m), Experts: {Expert: keep("ep"), SlotDim: ExpertReplicas(m),
			ExpertFFN: keep("etp")},
	}
	if core := p.coreLayout(m, heads); core != nil {
		layouts[Core] = core
	}
	return layouts
}
