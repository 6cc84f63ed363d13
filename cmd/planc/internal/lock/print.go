package lock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// header is the first line of a lock. It distinguishes planc's locks from those of other tools.
const header = "# The locked plan of a planc job. planc writes this file; commit it. To search a new plan: planc " +
	"plan --update\n"

// Bytes returns the text of the file, with sorted keys. The same content gives the same bytes.
func (f *File) Bytes() []byte {
	var b bytes.Buffer
	b.WriteString(header)
	printMap(&b, "", map[string]any{
		"cost_model": f.CostModel, "decided_from": toGeneric(f.DecidedFrom), "expect": toGeneric(f.Expect),
		"files": toGeneric(f.Files),
		"gen":   toGeneric(f.Gen), "inputs": f.Inputs.toGeneric(), "plan": toGeneric(f.Plan.JSON()),
		"plan_hash": f.PlanHash,
		"planc":     f.Planc,
		"predict":   toGeneric(f.Predict), "program": f.Program, "schema": Schema, "search": toGeneric(f.Search),
	})
	return b.Bytes()
}

// Decision returns the part of the text that a reviewer reads: the inputs and the plan.
func (f *File) Decision() []byte {
	var b bytes.Buffer
	printMap(&b, "", map[string]any{"inputs": f.Inputs.toGeneric(), "plan": toGeneric(f.Plan.JSON())})
	return b.Bytes()
}

// field is a text that is printed without quotes if YAML reads the same text back, whatever its type.
type field string

func (in Inputs) toGeneric() map[string]any {
	out := map[string]any{}
	for _, s := range Sections {
		rows := map[string]any{}
		for key, value := range in[s] {
			rows[key] = field(value)
		}
		out[s] = rows
	}
	return out
}

// toGeneric converts a value to maps, lists, numbers and texts by way of JSON.
func toGeneric(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		panic("lock: " + err.Error())
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		panic("lock: " + err.Error())
	}
	return out
}

func printMap(b *bytes.Buffer, indent string, m map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(b, "%s%s:", indent, scalar(key))
		if sub, ok := m[key].(map[string]any); ok && len(sub) > 0 {
			b.WriteByte('\n')
			printMap(b, indent+"  ", sub)
			continue
		}
		fmt.Fprintf(b, " %s\n", scalar(m[key]))
	}
}

// plain matches texts that need no quotes in YAML.
var plain = regexp.MustCompile(`^[A-Za-z./_][A-Za-z0-9./_+@%-]*( [A-Za-z0-9./_+@%-]+)*$`)

// plainList matches several values of a field.
var plainList = regexp.MustCompile(`^[A-Za-z0-9._-]+(, [A-Za-z0-9._-]+)+$`)

// digits matches hashes that YAML reads as numbers.
var digits = regexp.MustCompile(`^[0-9]+(e[0-9]+)?$`)

// reservedWords lists plain texts that YAML reads as values of another type.
var reservedWords = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", ".nan", ".inf", "nan", "inf"}

func scalar(v any) string {
	switch v := v.(type) {
	case nil:
		panic("lock: a value is missing")
	case string:
		if hexadecimal.MatchString(v) && !digits.MatchString(v) || plain.MatchString(v) &&
			!slices.Contains(reservedWords, strings.ToLower(v)) {
			return v
		}
		return strconv.Quote(v)
	case field:
		if _, err := strconv.ParseFloat(string(v), 64); err == nil || v == "true" || v == "false" ||
			plainList.MatchString(string(v)) {
			return string(v)
		}
		return scalar(string(v))
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = scalar(v[i])
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		return "{}"
	}
	return fmt.Sprint(v)
}

// planText returns the values of a plan by key, as ir prints them.
func planText(p ir.Plan) map[string]string {
	out := map[string]string{}
	for _, part := range strings.Split(p.Text(), " ") {
		key, value, _ := strings.Cut(part, "=")
		out[key] = value
	}
	return out
}
