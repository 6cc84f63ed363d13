package interop_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop/megatron"
	"github.com/planc-dev/planc/passes/search/space"
)

// derived are the keys of a plan that Megatron-LM computes from others. A wrong value of such a key cannot be written:
// the script then says another plan, which may be legal.
var derived = map[string]string{
	"dp":               "Megatron-LM computes it from the number of devices",
	"micro_batches":    "Megatron-LM computes it from the batch size and dp",
	"zero_group":       "Megatron-LM shards over dp · cp, or over equal groups of it",
	"sp":               "Megatron-LM ignores --sequence-parallel without tensor parallelism",
	"schedule":         "Megatron-LM chooses it from pp and vpp",
	"cp_kind":          "Megatron-LM ignores --cp-comm-type without context parallelism",
	"recompute_layers": "Megatron-LM recomputes selectively in all layers, and at most those that a chunk has",
	"recompute_every":  "Megatron-LM has one number for both, the layers and their groups",
	"recompute_split":  "Megatron-LM has it with full recomputation",
	"stage_layers":     "the number of chunks is another one",
	"axis_order":       "Megatron-LM computes it from --use-tp-pp-dp-mapping",
	"etp":              "models without experts have none",
	"ep":               "models without experts have none",
	"vpp":              "Megatron-LM has no chunks without a pipeline",
}

// acceptedByMegatron are the rules of planc that the parser of Megatron-LM does not have, with the reasons.
var acceptedByMegatron = map[string]string{
	"zero: zero N: engine megatron runs zero N": "the export writes it for Megatron-FSDP, which runs it",
	"zero: zero N requires dp above N":          "sharding over one replica changes nothing",
	"zero_group: zero_group N requires zero N, and zero": "groups of one replica change nothing; planc calls " +
		"that zero 0",
	"zero_group: zero_group N must divide dp N":   "it is checked when process groups are made",
	"zero_group: zero_group N must divide dp N ·": "it is checked when process groups are made",
	"zero_group: zero_group N: experts have N replicas, on": "Megatron-LM groups the replicas of experts by " +
		"themselves; planc has one group for both",
	"etp: etp N must divide tp N": "Megatron-LM lays out the ranks of experts by themselves; planc " +
		"splits tp",
	"sp: sp false: engine megatron trains experts with":       "layers of experts check it in their first forward pass",
	"pp: pp N · vpp N is N":                                   "Megatron-LM runs a layout with empty chunks",
	"stage_layers: stage_layers N leaves chunk N empty: with": "Megatron-LM runs a layout with empty chunks",
	"schedule: interleaved: pp N must divide N micro-batches": "Megatron-LM checks it when the step runs",
	"cp_kind: ep N takes a part of cp":                        "its ranks of experts do not follow cp",
	"etp: etp N must divide an expert's width":                "layers check it when they are made",
	"ep: ep N · etp N does not":                               "it is checked when process groups are made",
	"cp: cp N with cp_kind heads must split":                  "Transformer Engine checks it when the model runs",
	"cp: cp N with cp_kind heads must divide":                 "Transformer Engine checks it when the model runs",
	"recompute_every: recompute_every N: recompute_every above N needs recompute": "a group that is larger than a " +
		"chunk is the chunk",
	"recompute_split: recompute_split true: recompute_split needs recomputed blocks whose": "planc's runtime saves " +
		"all inputs if it splits them",
	"recompute_layers: recompute_layers N: recompute_layers must be N if": "full recomputation of no layer is none",
}

// A random plan that planc calls illegal is refused by Megatron-LM, too. The differences are listed with their reasons.
func TestMegatronRefusesIllegalPlans(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "megatron")
	r := rand.New(rand.NewPCG(24, 3))
	accepted := newDifferences()
	counts := map[string]int{}
	const draws = 2 * megatronDraws // some differences are rare
	for n := 0; n < draws; {
		d, _ := drawIllegal(t, r, jobLimits{engine: "megatron"})
		d.derive()
		reasons := d.broken()
		if len(reasons) == 0 {
			continue
		}
		n++
		script, err := megatron.Write(d.target())
		if err != nil {
			counts["refused by the export"]++
			continue
		}
		got, refusal := askMegatron(t, o, script, d.question.Hardware.Devices())
		if refusal != "" {
			counts["refused by both"]++
			continue
		}
		p := got.plan(d)
		if keys := differing(p.Text(), d.plan.Text()); len(keys) > 0 {
			counts["says another plan"]++
			for _, key := range keys {
				if derived[key] == "" {
					t.Errorf("Megatron-LM reads another %s: %s\n%s\n%s", key, p.Text(), d, script)
				}
			}
			continue
		}
		for _, reason := range reasons {
			accepted.add(ruleOf(reason), d.String()+"\n"+string(script))
		}
	}
	t.Log(counts)
	accepted.compare(t, acceptedByMegatron)
}

// derive sets the keys that Megatron-LM computes from others, as far as they have a value.
func (d *draw) derive() {
	p := &d.plan
	devices, batch := d.question.Hardware.Devices(), d.problem.GlobalBatch
	ranks := p.TP * p.PP * p.CP
	if devices%ranks == 0 {
		p.DP = devices / ranks
		if batch%(p.DP*p.MicroBatch) == 0 {
			p.MicroBatches = batch / (p.DP * p.MicroBatch)
		}
	}
	switch {
	case p.PP == 1:
		p.Schedule = "none"
	case p.Schedule == "none" || p.Schedule == "interleaved" || p.Schedule == "1f1b":
		p.Schedule = map[bool]string{true: "interleaved", false: "1f1b"}[p.VPP > 1]
	}
	if (p.CP == 1) != (p.CPKind == "none") {
		p.CPKind = map[bool]string{true: "none", false: "ring"}[p.CP == 1]
	}
	if len(space.ParseCounts(p)) != p.PP*p.VPP {
		counts := make([]int, p.PP*p.VPP)
		for i := range space.DimsOf(d.problem.Model).Layers {
			counts[i%len(counts)]++
		}
		p.StageLayers = space.JoinCounts(counts)
	}
	p.AxisOrder = space.DefaultOrder(p)
}

// ruleOf names the rule that a plan breaks: its key and the first words of the message, without numbers.
func ruleOf(r space.Reason) string {
	text, _, _ := strings.Cut(reasonOf(r.Message), ": use")
	words := strings.Fields(text)
	const limit = 7
	return r.Key + ": " + strings.Join(words[:min(limit, len(words))], " ")
}

// differing returns the keys in which two plans differ.
func differing(a, b string) (keys []string) {
	left, right := strings.Fields(a), strings.Fields(b)
	for i := range left {
		if left[i] != right[i] {
			key, _, _ := strings.Cut(left[i], "=")
			keys = append(keys, key)
		}
	}
	return keys
}
