package planner

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Plan is a plan of a document. Its JSON is an object with the plan's keys.
type Plan struct{ ir.Plan }

// MarshalJSON returns the plan as an object with its keys, sorted.
func (p Plan) MarshalJSON() ([]byte, error) { return json.Marshal(p.JSON()) }

// derivedKeys are the keys of a plan that usually follow from others. They are named as a difference only if nothing
// else differs, or if they do not follow.
var derivedKeys = map[string]bool{"zero_group": true, "micro_batches": true, "schedule": true, "stage_layers": true,
	"axis_order": true, "cp_kind": true, "etp": true}

// comparedKeys are the keys in which two plans are compared, in the order in which differences are named. The words of
// recompute include its number of blocks and their groups.
var comparedKeys = []string{"dp", "tp", "pp", "vpp", "cp", "cp_kind", "ep", "etp", "sp", "zero", "micro_batch",
	"recompute", "offload", "schedule", "zero_group", "micro_batches", "stage_layers", "axis_order", "moe_slack",
	"precision"}

// Differences returns in words how a plan differs from another: "zero 3 · no sp"; "" if it does not.
func Differences(p, from ir.Plan) string { return strings.Join(differenceWords(p, from, ""), " · ") }

// differenceWords returns the differences without those of one key. If that is "", the words say how much is
// recomputed.
func differenceWords(p, from ir.Plan, without string) []string {
	a, b := p.JSON(), from.JSON()
	var words, minor []string
	for _, key := range comparedKeys {
		switch {
		case key == "recompute" && without == "":
			if text := p.RecomputeWords(); text != from.RecomputeWords() {
				words = append(words, text)
			}
		case key == without, fmt.Sprint(a[key]) == fmt.Sprint(b[key]):
			continue
		case key == "sp" && p.TP == 1, key == "zero" && p.DP*p.CP == 1:
			continue // the key has only one value on such a plan
		case derivedKeys[key] && !isNamed(key, p, from):
			minor = append(minor, keyWords(key, a[key]))
		case key == "precision":
			words = append(words, precisionDifferences(a[key], b[key])...)
		default:
			words = append(words, keyWords(key, a[key]))
		}
	}
	if len(words) == 0 && without == "" {
		words = minor
	}
	return words
}

// precisionDifferences returns the kinds of values whose types differ, with the types of a: "grads bf16".
func precisionDifferences(a, b any) (words []string) {
	types, from := a.(map[string]string), b.(map[string]string)
	for _, kind := range slices.Sorted(maps.Keys(types)) {
		if types[kind] != from[kind] {
			words = append(words, fmt.Sprintf("%s %v", kind, types[kind]))
		}
	}
	return words
}

// isNamed reports whether the value of a derived key does not follow from the other differences.
func isNamed(key string, p, from ir.Plan) bool {
	switch key {
	case "zero_group":
		return p.Zero == from.Zero && p.DP == from.DP
	case "schedule":
		return p.Schedule == "gpipe" || p.Splits()
	}
	return false
}

// keyWords returns a key and its value in words: "zero 3", "no sp".
func keyWords(key string, value any) string {
	switch v := value.(type) {
	case bool:
		if v {
			return key
		}
		return "no " + key
	case []string:
		if len(v) == 0 {
			return "no " + key
		}
		return key + " " + strings.Join(v, ",")
	case []int:
		return key + " " + strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ","), "[]")
	}
	return fmt.Sprintf("%s %v", key, value)
}

// firstTwo returns the two words that say most of a difference. It drops dp, which follows from the other degrees.
func firstTwo(words []string) string {
	words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "dp ") })
	return strings.Join(words[:min(2, len(words))], " · ")
}
