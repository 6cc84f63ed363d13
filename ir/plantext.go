package ir

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// planField is one key of a plan in its text form and in JSON, as defined by contract.md.
type planField struct {
	name string
	ptr  func(*Plan) any // *int, *bool, *string, *float64, *Precision
}

// planFields are the keys of a plan in the order in which they print.
var planFields = []planField{
	{"dp", func(p *Plan) any { return &p.DP }},
	{"tp", func(p *Plan) any { return &p.TP }},
	{"pp", func(p *Plan) any { return &p.PP }},
	{"cp", func(p *Plan) any { return &p.CP }},
	{"ep", func(p *Plan) any { return &p.EP }},
	{"etp", func(p *Plan) any { return &p.ETP }},
	{"vpp", func(p *Plan) any { return &p.VPP }},
	{"sp", func(p *Plan) any { return &p.SP }},
	{"cp_kind", func(p *Plan) any { return &p.CPKind }},
	{"zero", func(p *Plan) any { return &p.Zero }},
	{"zero_group", func(p *Plan) any { return &p.ZeroGroup }},
	{"micro_batch", func(p *Plan) any { return &p.MicroBatch }},
	{"micro_batches", func(p *Plan) any { return &p.MicroBatches }},
	{"schedule", func(p *Plan) any { return &p.Schedule }},
	{"recompute", func(p *Plan) any { return &p.Recompute }},
	// the first blocks of each chunk, at most those of the largest chunk; 0 if recompute is none
	{"recompute_layers", func(p *Plan) any { return &p.RecomputeLayers }},
	{"recompute_every", func(p *Plan) any { return &p.RecomputeEvery }},
	{"recompute_split", func(p *Plan) any { return &p.RecomputeSplit }},
	{"stage_layers", func(p *Plan) any { return &p.StageLayers }},
	{"axis_order", func(p *Plan) any { return &p.AxisOrder }},
	{"offload", func(p *Plan) any { return &p.Offload }},
	{"moe_slack", func(p *Plan) any { return &p.MoESlack }},
	{"precision", func(p *Plan) any { return &p.Precision }},
}

// PlanKeys returns the keys of a plan in the order in which they print.
func PlanKeys() []string {
	keys := make([]string, len(planFields))
	for i, f := range planFields {
		keys[i] = f.name
	}
	return keys
}

// Text prints every key: dp=2 tp=2 pp=1 ...; ParsePlan reads it back.
func (p Plan) Text() string {
	parts := make([]string, len(planFields))
	for i, f := range planFields {
		parts[i] = f.name + "=" + printField(f.ptr(&p))
	}
	return strings.Join(parts, " ")
}

func printField(ptr any) string {
	switch v := ptr.(type) {
	case *int:
		return strconv.Itoa(*v)
	case *bool:
		return strconv.FormatBool(*v)
	case *float64:
		return float(*v)
	case *Precision:
		s := []string{v.ComputeName()}
		for _, e := range []Elem{v.Params, v.Grads, v.Reduce, v.Master, v.Moments} {
			s = append(s, e.String())
		}
		return strings.Join(s, ",")
	}
	return *ptr.(*string)
}

// ParsePlan reads the text that Plan.Text prints.
func ParsePlan(s string) (Plan, error) {
	var p Plan
	parts := strings.Split(s, " ")
	if len(parts) != len(planFields) {
		return p, fmt.Errorf("plan: has %d keys, must have %d", len(parts), len(planFields))
	}
	for i, f := range planFields {
		value, ok := strings.CutPrefix(parts[i], f.name+"=")
		if !ok {
			return p, fmt.Errorf("plan: %q must be %s=value", parts[i], f.name)
		}
		if err := parseField(f.ptr(&p), value); err != nil || printField(f.ptr(&p)) != value {
			return p, cmp.Or(err, fmt.Errorf("plan: %s=%s is not in the form that planc prints", f.name, value))
		}
	}
	return p, nil
}

// SetKey sets one key from its text, in the form that Text prints.
func (p *Plan) SetKey(key, value string) error {
	for _, f := range planFields {
		if f.name != key {
			continue
		}
		if err := parseField(f.ptr(p), value); err != nil || printField(f.ptr(p)) != value {
			return fmt.Errorf("%s is %q, which is not a valid value", key, value)
		}
		return nil
	}
	return fmt.Errorf("a plan has no key %s", key)
}

func parseField(ptr any, s string) (err error) {
	switch v := ptr.(type) {
	case *int:
		*v, err = strconv.Atoi(s)
	case *bool:
		*v, err = strconv.ParseBool(s)
	case *float64:
		*v, err = strconv.ParseFloat(s, 64)
	case *string:
		*v = s
	case *Precision:
		return v.parse(s)
	}
	return err
}

func (p *Precision) parse(s string) error {
	fields := []*Elem{&p.Compute, &p.Params, &p.Grads, &p.Reduce, &p.Master, &p.Moments}
	parts := strings.Split(s, ",")
	if len(parts) != len(fields) {
		return fmt.Errorf("precision %q must have %d types", s, len(fields))
	}
	p.FP8 = parts[0] == fp8Name
	if p.FP8 {
		parts[0] = BF16.String()
	}
	for i, f := range fields {
		e, ok := ParseElem(parts[i])
		if !ok {
			return fmt.Errorf("precision %q: unknown type %q", s, parts[i])
		}
		*f = e
	}
	return nil
}

// JSON returns the plan as contract.md's object: lists as lists, precision as an object.
func (p Plan) JSON() map[string]any {
	out := map[string]any{}
	for _, f := range planFields {
		out[f.name] = jsonField(f, &p)
	}
	return out
}

func jsonField(f planField, p *Plan) any {
	switch v := f.ptr(p).(type) {
	case *int:
		return *v
	case *bool:
		return *v
	case *float64:
		return *v
	case *Precision:
		return map[string]string{"compute": v.ComputeName(), "params": v.Params.String(), "grads": v.Grads.String(),
			"reduce": v.Reduce.String(), "master": v.Master.String(), "moments": v.Moments.String()}
	case *string:
		switch f.name {
		case "stage_layers":
			return intList(*v)
		case "axis_order", "offload":
			return stringList(*v)
		}
		return *v
	}
	panic("ir: plan field of unknown type: " + f.name)
}

func stringList(s string) []string {
	if s == "" {
		return []string{}
	}
	return strings.Split(s, ",")
}

func intList(s string) []int {
	out := []int{}
	for _, p := range stringList(s) {
		n, _ := strconv.Atoi(p)
		out = append(out, n)
	}
	return out
}

func sortedRegions(l map[Region]Layout) []Region { return slices.Sorted(maps.Keys(l)) }
