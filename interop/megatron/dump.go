package megatron

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// dumpLine is a line of the list of arguments in a log: "  tensor_model_parallel_size ...... 4". Launchers print the
// rank or the time in front of it.
var dumpLine = regexp.MustCompile(`^(?:.*?[\]:>]\s+|\s*)([a-zA-Z_][a-zA-Z0-9_]*) \.{2,} ?(.*)$`)

// readDump reads the list of arguments in a log. Settings with their default values are not arguments.
func readDump(f interop.File) *source {
	src := &source{isDump: true, env: map[string]string{}}
	var list []*argument
	seen := map[string]bool{}
	number := 0
	for line := range strings.Lines(string(f.Data)) {
		number++
		m := dumpLine.FindStringSubmatchIndex(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		name, value := line[m[2]:m[3]], strings.TrimSpace(line[m[4]:m[5]])
		if seen[name] { // several ranks print it
			continue
		}
		seen[name] = true
		a := &argument{spelled: name, pos: ir.Pos{File: f.Name, Line: number, Column: m[2] + 1}}
		a.fromDump(value)
		switch {
		case a.option == nil:
			src.derived(a, value)
		case !a.isDefault():
			list = append(list, a)
		}
	}
	src.settings = newSettings(list)
	return src
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
