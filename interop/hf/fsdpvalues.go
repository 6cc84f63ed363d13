package hf

import (
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/accelerate"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// isFSDP1 reports whether the file runs FSDP 1. The default of transformers 5 is FSDP 2.
func (r *reader) isFSDP1() bool {
	version, _ := r.fsdp.Int(r.fsdp.fsdpKey("version"))
	return version == 1
}

// sizedValues returns the arguments that say a plan. The file's parallelism_config stays.
func sizedValues(r *reader, t *interop.Target) []interop.Value {
	if r.Has("parallelism_config") {
		return withSizes(values(t), &t.Plan)
	}
	return values(t)
}

// ownValues returns the arguments that say a plan as a file with fsdp spells them: the sharding strategy may be a word
// of fsdp, and with version 1 it says the groups of parallelism_config too.
func (r *reader) ownValues(t *interop.Target) (out []interop.Value) {
	isOld, words := r.isFSDP1(), r.strategyWords()
	for _, v := range sizedValues(r, t) {
		name, isConfig := strings.CutPrefix(v.Key, "fsdp_config.")
		switch {
		case isOld && (strings.HasPrefix(v.Key, "parallelism_config") || v.Key == versionKey):
			continue
		case v.Key == "fsdp" && !v.IsAbsent && words != nil:
			v.Text, v.Plan = r.withStrategy(words, strategyOf(t, isOld)), []string{"zero", "zero_group"}
		case name == "reshard_after_forward" && isConfig && words != nil:
			continue
		case name == "reshard_after_forward" && isConfig && isOld:
			v.Text, v.Plan = strategyOf(t, true), []string{"zero", "zero_group"}
		}
		if isConfig {
			v.Key = r.fsdp.fsdpKey(name)
		}
		out = append(out, v)
	}
	return out
}

// valuesOfDDP returns the arguments that say a plan in a file that does not run FSDP and yet may have fsdp_config.
// With version 1, a plan that shards needs version 2.
func valuesOfDDP(r *reader, t *interop.Target) []interop.Value {
	out := sizedValues(r, t)
	for i := range out {
		v := &out[i]
		if v.Key == versionKey && t.Plan.Zero > 0 && r.isFSDP1() {
			*v = interop.Value{Key: v.Key, Text: "2", Plan: []string{"zero"}}
		}
		if name, isConfig := strings.CutPrefix(v.Key, "fsdp_config."); isConfig {
			v.Key = r.fsdpKey(name)
		}
	}
	return out
}

// strategyWords returns the words of fsdp if one of them says the sharding strategy; else nil.
func (r *reader) strategyWords() []string {
	n := r.Node("fsdp")
	if _, isBool := n.Bool(); isBool || n.Kind == strict.Map || r.fsdp.Has(r.fsdp.fsdpKey("reshard_after_forward")) {
		return nil
	}
	words := wordsOf(n)
	if !slices.ContainsFunc(words, isStrategy) {
		return nil
	}
	return words
}

func isStrategy(word string) bool {
	_, ok := strategies[word]
	return ok
}

// withStrategy returns words of fsdp with another sharding strategy.
func (r *reader) withStrategy(words []string, strategy string) string {
	words = slices.Clone(words)
	for i, word := range words {
		if isStrategy(word) {
			words[i] = strategy
		}
	}
	if r.Node("fsdp").Kind != strict.List {
		return strings.Join(words, " ")
	}
	for i, word := range words {
		words[i] = strconv.Quote(word)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// strategyOf returns the sharding strategy that says a plan. With FSDP 2, parallelism_config says the groups.
func strategyOf(t *interop.Target, isFSDP1 bool) string {
	whole := *t
	if !isFSDP1 {
		whole.Plan.ZeroGroup = whole.Plan.Replicas()
	}
	return strings.ToLower(accelerate.StrategyOf(&whole))
}
