package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
)

// parseRestriction parses the value of --why-not: tp=4,sp=false,rest=kept. Keys and values are those of the job's plan.
func parseRestriction(text string) (planner.Restriction, error) {
	var r planner.Restriction
	var pins spec.Pins
	doc, diags := strict.New(), ir.Diags{}
	seen := map[string]bool{}
	for _, part := range outsideBrackets(text) {
		key, value, _ := strings.Cut(part, "=")
		key = strings.TrimPrefix(key, "plan.")
		switch {
		case value == "" || value == "null":
			diags = append(diags, ir.Diag{Code: BadFlag,
				Msg: fmt.Sprintf("--why-not %s: write KEY=VALUE, such as tp=4 or tp=4,rest=kept", part)})
		case key == "rest":
			r.IsRestKept = value == "kept"
			if value != "kept" && value != "free" {
				diags = append(diags, ir.Diag{Code: BadFlag, Fix: "rest=kept",
					Msg: fmt.Sprintf("--why-not rest=%s: rest must be kept or free", value)})
			}
		case seen[key]:
			diags = append(diags, ir.Diag{Code: BadFlag, Fix: key + "=[...]",
				Msg: fmt.Sprintf("--why-not %s: %s is given twice; a list allows several values", part, key)})
		case jobPlace(key) != "":
			at := jobPlace(key)
			diags = append(diags, ir.Diag{Code: strict.UnknownKey, Msg: fmt.Sprintf(
				"--why-not %s: %s is a field of the job, not of the plan; planc plan --set %s=%s plans the job "+
					"with it", part,
				at, at, value)})
		default:
			seen[key] = true
			diags = append(diags, doc.Set(spec.Override{Key: key, Value: value, Shown: "--why-not " + part}, nil)...)
		}
	}
	diags = append(diags, doc.Decode(&pins)...)
	pins.Own(&diags, func(string) ir.Pos { return ir.Pos{} })
	r.Pins = search.PinsOf(&pins)
	if len(r.Pins) == 0 && len(diags) == 0 {
		return r, inputErrorf(BadFlag, "", "--why-not rest=... changes no key of the plan: add one, such as tp=4")
	}
	return r, diags.Err()
}

// jobPlace returns the path of a key in the job that the plan does not have; "" if there is none, or several.
func jobPlace(key string) string {
	last := key[strings.LastIndexByte(key, '.')+1:]
	if slices.Contains(strict.Keys(reflect.TypeFor[spec.Pins]()), last) {
		return ""
	}
	places := slices.DeleteFunc(strict.Places(reflect.TypeFor[spec.Job](), last), func(p string) bool {
		return key != last && p != key
	})
	if len(places) != 1 {
		return ""
	}
	return places[0]
}

// outsideBrackets splits a text at the commas that are outside of lists.
func outsideBrackets(text string) []string {
	depth := 0
	return strings.Split(strings.Map(func(r rune) rune {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				return 0
			}
		}
		return r
	}, text), "\x00")
}
