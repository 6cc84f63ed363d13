package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Pins are the fields of the plan that the user has decided. A Pin without values is searched. The tag now lists the
// values that the planner supports.
type Pins struct {
	DP              Pin[int]     `yaml:"dp" min:"1" max:"1e6" doc:"data-parallel degree" absent:"searched" eg:"8"`
	TP              Pin[int]     `yaml:"tp" min:"1" max:"1e6" doc:"tensor-parallel degree" absent:"searched" eg:"[1, 2, 4]"`
	PP              Pin[int]     `yaml:"pp" min:"1" max:"128" doc:"number of pipeline stages" absent:"searched" eg:"1"`
	CP              Pin[int]     `yaml:"cp" min:"1" max:"1e6" doc:"context-parallel degree: parts of a sequence" absent:"searched" eg:"1"`
	EP              Pin[int]     `yaml:"ep" min:"1" max:"1e6" doc:"expert-parallel degree" absent:"searched" eg:"1"`
	ETP             Pin[int]     `yaml:"etp" min:"1" max:"1e6" doc:"tensor-parallel degree inside experts" absent:"searched" eg:"1"`
	EPAxis          string       `yaml:"ep_axis" enum:"own" doc:"own: devices = dp·tp·pp·cp·ep, with this dp; by default ep divides dp·cp·tp" absent:"experts regroup dp·cp·tp" eg:"own"`
	VPP             Pin[int]     `yaml:"vpp" min:"1" max:"64" doc:"chunks (virtual stages) per stage" absent:"searched" eg:"1"`
	SP              Pin[bool]    `yaml:"sp" doc:"sequence parallelism over tp" absent:"searched" eg:"true"`
	CPKind          Pin[string]  `yaml:"cp_kind" enum:"none,ring,gather,heads" meant:"ulysses=heads,a2a=heads,all_to_all=heads,p2p=ring,all_gather=gather,allgather=gather" doc:"how context parallelism exchanges keys and values" absent:"searched" eg:"none"`
	Zero            Pin[int]     `yaml:"zero" min:"0" max:"3" doc:"ZeRO stage, which shards over replicas: 0 nothing, 1 optimizer state, 2 also gradients, 3 also parameters" absent:"searched" eg:"1"`
	ZeroGroup       Pin[int]     `yaml:"zero_group" min:"1" max:"1e6" doc:"ranks over which one copy of the state is sharded" absent:"searched" eg:"8"`
	MicroBatch      Pin[int]     `yaml:"micro_batch" min:"1" max:"1e8" doc:"sequences per micro-batch of a replica" absent:"searched" eg:"2"`
	MicroBatches    Pin[int]     `yaml:"micro_batches" min:"1" max:"1e8" doc:"micro-batches per step" absent:"searched" eg:"16"`
	Schedule        Pin[string]  `yaml:"schedule" enum:"none,gpipe,1f1b,interleaved,zb-h1,zb-v" meant:"zb=zb-h1,zero_bubble=zb-h1,zero-bubble=zb-h1,zbh1=zb-h1,zbv=zb-v,dualpipe_v=zb-v,vpp=interleaved,virtual=interleaved,pipedream=1f1b" doc:"pipeline schedule" absent:"searched" eg:"none"`
	Recompute       Pin[string]  `yaml:"recompute" enum:"none,selective,full" meant:"checkpoint=full,checkpointing=full,true=full,all=full,uniform=full,block=full,attention=selective,core_attn=selective,false=none,off=none" doc:"activations that the backward pass recomputes" absent:"searched" eg:"none"`
	RecomputeLayers Pin[int]     `yaml:"recompute_layers" min:"0" max:"1024" doc:"blocks per chunk that are recomputed" absent:"searched" eg:"0"`
	RecomputeEvery  Pin[int]     `yaml:"recompute_every" min:"1" max:"1024" doc:"one block input in this many is saved" absent:"searched" eg:"1"`
	RecomputeSplit  Pin[bool]    `yaml:"recompute_split" doc:"saved block inputs are sharded over tp" absent:"searched" eg:"false"`
	StageLayers     Pin[int]     `yaml:"stage_layers" min:"0" max:"1024" doc:"number of blocks of every chunk, in model order" absent:"searched" eg:"[16, 16]"`
	AxisOrder       Pin[string]  `yaml:"axis_order" enum:"tp,cp,dp,pp" doc:"all axes, starting with the one along which consecutive ranks lie" absent:"searched" eg:"[tp, dp]"`
	Offload         Pin[string]  `yaml:"offload" enum:"optimizer:cpu,optimizer:nvme,params:cpu,params:nvme,activations:cpu" now:"-" doc:"state that may be moved off the device" absent:"searched" eg:"[optimizer:cpu]"`
	MoESlack        Pin[float64] `yaml:"moe_slack" alias:"moe_capacity_factor" min:"1" max:"16384" doc:"capacity factor: size of an expert's buffer over its even share of the tokens" absent:"1.25" eg:"1.2"`
}

// Pin is a field of the plan. Without values it is searched; with one value it is fixed; with several it is one of
// them.
type Pin[T int | bool | string | float64] struct{ Values []T }

// Free reports whether the field is searched without limits.
func (p Pin[T]) Free() bool { return len(p.Values) == 0 }

// Own converts dp to planc's meaning if ep is an axis of its own (plan.ep_axis own): planc's dp counts all replicas
// that see different tokens, which includes the ranks of ep.
func (p *Pins) Own(diags *ir.Diags, pos func(path string) ir.Pos) {
	if p.EPAxis != "own" || p.DP.Free() {
		return
	}
	if len(p.EP.Values) != 1 {
		diags.Addf(pos("plan.ep_axis"), Missing,
			"plan.ep_axis own needs exactly one value of plan.ep, because plan.dp is multiplied by it")
		return
	}
	for i := range p.DP.Values {
		p.DP.Values[i] *= p.EP.Values[0]
	}
}

// List returns the value of a field that is a list itself, in the notation of plans: "16,16".
func (p Pin[T]) List() string {
	words := make([]string, len(p.Values))
	for i, v := range p.Values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, ",")
}

// Allows reports whether the pin permits the value.
func (p Pin[T]) Allows(v T) bool { return p.Free() || slices.Contains(p.Values, v) }

// UnmarshalNode reads a scalar or a list of scalars.
func (p *Pin[T]) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	if n.Kind == strict.List {
		c.Decode(n, path, &p.Values)
		if len(n.Items) == 0 {
			c.Addf(n.Pos, Missing, "%s is an empty list, which allows nothing: use one or more values, or null "+
				"to search", path)
		}
		return
	}
	if n.Kind == strict.String && strings.Contains(n.Text, ",") {
		c.Fixf(n.Pos, strict.WrongType, "["+n.Text+"]", "%s is text %q; it must be one value or a list", path, n.Text)
		return
	}
	p.Values = make([]T, 1)
	c.Decode(n, path, &p.Values[0])
}

// Violates returns the key of the first pin, in the order of Pins, that the plan does not satisfy, "" if it satisfies
// all.
func (p *Pins) Violates(plan ir.Plan) string {
	for _, k := range p.rows(plan) {
		if !k.ok {
			return k.key
		}
	}
	return ""
}

type pinRow struct {
	key string
	ok  bool
}

func (p *Pins) rows(plan ir.Plan) []pinRow {
	return []pinRow{
		{"dp", p.DP.Allows(plan.DP)}, {"tp", p.TP.Allows(plan.TP)}, {"pp", p.PP.Allows(plan.PP)},
		{"cp", p.CP.Allows(plan.CP)},
		{"ep", p.EP.Allows(plan.EP)}, {"etp", p.ETP.Allows(plan.ETP)}, {"vpp", p.VPP.Allows(plan.VPP)},
		{"sp", p.SP.Allows(plan.SP)},
		{"cp_kind", p.CPKind.Allows(plan.CPKind)}, {"zero", p.Zero.Allows(plan.Zero)},
		{"zero_group", p.ZeroGroup.Allows(plan.ZeroGroup)},
		{"micro_batch", p.MicroBatch.Allows(plan.MicroBatch)},
		{"micro_batches", p.MicroBatches.Allows(plan.MicroBatches)},
		{"schedule", p.Schedule.Allows(plan.Schedule)}, {"recompute", p.Recompute.Allows(plan.Recompute)},
		{"recompute_layers", p.RecomputeLayers.Allows(plan.RecomputeLayers)}, {"recompute_every",
			p.RecomputeEvery.Allows(plan.RecomputeEvery)},
		{"recompute_split", p.RecomputeSplit.Allows(plan.RecomputeSplit)},
		{"moe_slack", p.MoESlack.Allows(plan.MoESlack)},
		{"stage_layers", p.StageLayers.Free() || p.StageLayers.List() == plan.StageLayers},
		{"axis_order", p.AxisOrder.Free() || p.AxisOrder.List() == plan.AxisOrder},
	}
}

// PinNames returns the keys of plan.
func PinNames() []string { return strict.Keys(reflect.TypeFor[Pins]()) }
