package megatron

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/planc-dev/planc/ir"
)

//go:embed options.tsv
var optionsTable string

// Version is the version of Megatron-LM whose options the table has.
const Version = "megatron-core 0.19.2"

// Option is an option of Megatron-LM.
type Option struct {
	// Dest is the name of the setting: "tensor_model_parallel_size". The log and swift use it.
	Dest string
	// Name is the option: "--tensor-model-parallel-size".
	Name    string
	Aliases []string
	// Arity is the number of values: "0", "1", "3", "+" (one or more) or "*" (any number).
	Arity string
	// Type is int, float, str or bool; or true, false or on-off for an option without a value, which sets that.
	Type    string
	Choices []string
	// Default is the default in JSON, a string without quotes; "" if there is none.
	Default string
	Group   string
	use     string // taken, none or unsupported
	note    string
}

// options is the table, read once.
var options = sync.OnceValue(func() *optionSet {
	set := &optionSet{byName: map[string]*Option{}, byDest: map[string][]*Option{}}
	for line := range strings.Lines(optionsTable) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "dest\t") {
			continue
		}
		f := strings.Split(line, "\t")
		o := &Option{Dest: f[0], Name: f[1], Aliases: strings.Fields(f[2]), Arity: f[3], Type: f[4],
			Choices: strings.Fields(f[5]), Default: f[6], Group: f[7], use: f[8], note: f[9]}
		set.all = append(set.all, o)
		set.byDest[o.Dest] = append(set.byDest[o.Dest], o)
		for _, name := range append([]string{o.Name}, o.Aliases...) {
			set.byName[name] = o
		}
	}
	return set
})

// optionSet finds options.
type optionSet struct {
	all    []*Option
	byName map[string]*Option
	byDest map[string][]*Option // several options can set one setting, as --no-x and --x
}

// Options returns all options in the order of Megatron-LM's help.
func Options() []*Option { return slices.Clone(options().all) }

// nearest returns the option that a misspelt one probably means; "" if there is none. Underscores for dashes are the
// most common input error.
func nearest(name string) string {
	dashed := strings.ReplaceAll(name, "_", "-")
	// other programs call it --tensor-parallel-size
	for _, candidate := range []string{dashed, strings.Replace(dashed, "-parallel-size", "-model-parallel-size", 1)} {
		if o := options().byName[candidate]; o != nil {
			return o.Name
		}
	}
	return ir.Nearest(name, slices.Sorted(maps.Keys(options().byName)))
}

// isFlag reports whether the option takes no value.
func (o *Option) isFlag() bool { return o.Arity == "0" }

// isOfRate reports whether an option belongs to the schedule of the learning rate, which does not decide the plan.
func (o *Option) isOfRate() bool {
	return o.Group == "learning rate and weight decay" && o.Dest != "lr"
}

// defaultText returns the default in the form of a command line; "" if there is none.
func (o *Option) defaultText() string {
	var list []any
	if strings.HasPrefix(o.Default, "[") && json.Unmarshal([]byte(o.Default), &list) == nil {
		words := make([]string, len(list))
		for i, v := range list {
			words[i] = strings.Trim(jsonText(v), `"`)
		}
		return strings.Join(words, " ")
	}
	return o.Default
}

// jsonText returns a value as JSON.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// check returns what is wrong with a value of the option; "" if nothing is.
func (o *Option) check(value string) string {
	switch o.Type {
	case "int":
		if _, err := strconv.Atoi(value); err != nil {
			return "must be an integer"
		}
	case "float":
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return "must be a number"
		}
	}
	if len(o.Choices) > 0 && !slices.Contains(o.Choices, value) {
		return "must be one of " + strings.Join(o.Choices, ", ")
	}
	return ""
}
