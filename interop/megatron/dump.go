package megatron

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// dumpLine is a line of the list of arguments in a log: "  tensor_model_parallel_size ...... 4". Launchers print the
// rank or the time in front of it.
var dumpLine = regexp.MustCompile(`^(?:.*?[\]:>]\s+|\s*)([a-zA-Z_][a-zA-Z0-9_]*) \.{2,} ?(.*)$`)

// dumpedLine is a line of a list of arguments.
type dumpedLine struct {
	name, value string
	pos         ir.Pos
}

// dumpsOf returns the lists of arguments in a log, which has several if a run was restarted. Several ranks may print
// one list: each name counts once.
func dumpsOf(f interop.File) (dumps [][]dumpedLine) {
	var dump []dumpedLine
	seen, isEnded := map[string]bool{}, false
	number := 0
	for line := range strings.Lines(string(f.Data)) {
		number++
		switch {
		case strings.Contains(line, "- end of arguments -"):
			isEnded = true
		case isEnded && strings.Contains(line, "- arguments -"):
			dumps = append(dumps, dump)
			dump, isEnded = nil, false
			clear(seen)
		}
		m := dumpLine.FindStringSubmatchIndex(strings.TrimRight(line, "\r\n"))
		if m == nil || seen[line[m[2]:m[3]]] {
			continue
		}
		name := line[m[2]:m[3]]
		seen[name] = true
		dump = append(dump, dumpedLine{name, strings.TrimSpace(line[m[4]:m[5]]),
			ir.Pos{File: f.Name, Line: number, Column: m[2] + 1}})
	}
	if len(dump) == 0 && len(dumps) > 0 { // the log ends after the heading
		return dumps
	}
	return append(dumps, dump)
}

// isSameDump reports whether two lists have the same arguments.
func isSameDump(a, b []dumpedLine) bool {
	return slices.EqualFunc(a, b, func(x, y dumpedLine) bool { return x.name == y.name && x.value == y.value })
}

// readDump reads the list of arguments in a log, the last if there are several. Settings with their default values are
// not arguments.
func readDump(f interop.File) *source {
	src := &source{isDump: true, isLog: true, env: map[string]string{}}
	dumps := dumpsOf(f)
	dump := dumps[len(dumps)-1]
	if slices.ContainsFunc(dumps, func(other []dumpedLine) bool { return !isSameDump(other, dump) }) {
		src.notes = append(src.notes, interop.Note{Pos: dump[0].pos, Text: fmt.Sprintf("the log has %d lists of "+
			"arguments, which differ: this is the last", len(dumps))})
	}
	var list []*argument
	for _, line := range dump {
		a := &argument{spelled: line.name, pos: line.pos}
		a.fromDump(line.value)
		switch {
		case a.option == nil:
			src.derived(a, line.value)
		case !a.isDefault():
			list = append(list, a)
		}
	}
	src.settings = newSettings(src.withoutDerived(list))
	src.multiplyDegrees()
	return src
}

// replicasKey is the degree of data parallelism, which Megatron-LM computes and prints.
const replicasKey = "data_parallel_size"

// multiplyDegrees computes the number of devices from the degrees of a list without world_size.
func (src *source) multiplyDegrees() {
	i := slices.IndexFunc(src.launch, func(k interop.Key) bool { return k.Name == replicasKey })
	if i < 0 || src.devices > 0 {
		return
	}
	s := src.settings
	src.devices = atoi(src.launch[i].Value) * s.number("tensor_model_parallel_size") *
		s.number("pipeline_model_parallel_size") * s.number("context_parallel_size")
	src.launch[i].Use, src.launch[i].Note = interop.Taken, ""
	src.launch[i].As = []string{"devices: " + strconv.Itoa(src.devices)}
}

// derivedFrom maps settings to those from which Megatron-LM computes them if they are not given.
// Source: megatron-core 0.19.2, training/arguments.py, validate_args.
var derivedFrom = map[string]string{
	"start_weight_decay": "weight_decay", "end_weight_decay": "weight_decay",
	"tensor_parallel_num_weight_shards":        "tensor_model_parallel_size",
	"expert_tensor_parallel_num_weight_shards": "expert_tensor_parallel_size",
}

// withoutDerived leaves out settings with the value that Megatron-LM computes from another one.
func (src *source) withoutDerived(list []*argument) []*argument {
	all := newSettings(list)
	return slices.DeleteFunc(list, func(a *argument) bool {
		from := derivedFrom[a.option.Dest]
		if from == "" || a.text() != all.text(from) {
			return false
		}
		src.launch = append(src.launch, interop.Key{Pos: a.pos, Name: a.spelled, Value: a.text(), Use: interop.NoEffect,
			Note: "computed by Megatron-LM"})
		return true
	})
}

// derived reads a value that Megatron-LM computes.
func (src *source) derived(a *argument, value string) {
	key := interop.Key{Pos: a.pos, Name: a.spelled, Value: value, Use: interop.NoEffect,
		Note: "computed by Megatron-LM"}
	if a.spelled == "world_size" {
		src.devices = atoi(value)
		key.Use, key.Note, key.As = interop.Taken, "", []string{"devices: " + value}
	}
	src.launch = append(src.launch, key)
}

// log returns what a log says of a run's options. Megatron-LM prints the granularity that --recompute-activations sets,
// and not that option, and the degree of tensor parallelism as that of experts if the script gives no other.
// Source: megatron-core 0.19.2, training/arguments.py: validate_args.
func (src *source) log() *interop.Log {
	const activations = "recompute_activations"
	const experts, tensors = "expert_tensor_parallel_size", "tensor_model_parallel_size"
	spell := func(dest string) string { return options().byDest[dest][0].Name }
	s := src.settings
	l := &interop.Log{Leaving: src.leavingLog}
	if s.text(granularity) == "selective" && !s.has(activations) {
		l.Unsure = append(l.Unsure, spell(granularity), spell(activations))
	}
	if s.has(experts) && s.text(experts) == s.text(tensors) {
		l.Unsure = append(l.Unsure, spell(experts))
	}
	l.Get = func(key string) (text string, isSet bool) {
		o := options().byName[key]
		if o == nil {
			return "", false
		}
		if a := s.byDest[o.Dest]; a != nil {
			return a.text(), true
		}
		return "", slices.Contains(l.Unsure, key)
	}
	return l
}

// fromDump sets an argument's option and values from the text that Python prints.
func (a *argument) fromDump(value string) {
	list := options().byDest[a.spelled]
	if len(list) == 0 {
		return
	}
	a.option = list[0]
	a.on = value == "True"
	switch {
	case value == "None" || value == "True" || value == "False":
	case strings.HasPrefix(value, "["):
		for _, v := range strings.Split(strings.Trim(value, "[]"), ",") {
			v = strings.Trim(strings.TrimSpace(v), `'"`)
			if v != "" {
				a.values = append(a.values, v)
			}
		}
	default:
		a.values = []string{dumpValue(value)}
	}
}

// dumpValue returns a scalar in the form of the command line: an enum without its class, a type by its short name.
func dumpValue(value string) string {
	if short := map[string]string{"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16",
		"torch.uint8": "fp8"}[value]; short != "" {
		return short
	}
	if strings.HasPrefix(value, "AttnBackend.") {
		return value[len("AttnBackend."):]
	}
	return value
}

// isDefault reports whether the value is the option's default, or none.
func (a *argument) isDefault() bool {
	o := a.option
	if o.isFlag() {
		return a.on == (o.Default == "true")
	}
	if len(a.values) == 0 {
		return true
	}
	text := a.text()
	x, errX := strconv.ParseFloat(text, 64)
	y, errY := strconv.ParseFloat(o.Default, 64)
	return text == o.defaultText() || errX == nil && errY == nil && x == y
}

// atoi returns a number; 0 if the text is none.
func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
