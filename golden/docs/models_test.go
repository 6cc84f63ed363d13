package docs_test

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir/spec"
)

// modelTables returns the catalogue of models, with one table per family.
func modelTables(string) (out []string) {
	byFamily := map[string][]*spec.Config{}
	var families []string
	for _, name := range spec.ModelNames() {
		c, err := spec.LoadModel(name, nil)
		if err != nil {
			panic(err)
		}
		if byFamily[c.Family] == nil {
			families = append(families, c.Family)
		}
		byFamily[c.Family] = append(byFamily[c.Family], c)
	}
	slices.Sort(families)
	for _, family := range families {
		out = append(out, "", "### "+family, "")
		out = append(out, table("name", "parameters", "layers", "hidden", "heads", "KV heads", "vocabulary",
			"source")...)
		models := byFamily[family]
		slices.SortStableFunc(models, func(a, b *spec.Config) int {
			return int(min(max(a.Params()-b.Params(), -1), 1))
		})
		for _, c := range models {
			m, err := spec.ModelInfo(c.Name)
			if err != nil {
				panic(err)
			}
			out = append(out, harness.TableRow(namesOf(m), thousands(c.Params()), fmt.Sprint(c.Layers),
				fmt.Sprint(c.Hidden),
				fmt.Sprint(c.Heads),
				fmt.Sprint(c.KVHeads), fmt.Sprint(c.Vocab), sourceOf(m)))
		}
	}
	return out[1:]
}

// namesOf returns a row's name and its aliases.
func namesOf(m spec.Model) string {
	out := code(m.Name)
	for _, a := range m.Aliases {
		out += "<br>" + code(a)
	}
	return out
}

// sourceOf returns the source, date and note of a row of the catalogue.
func sourceOf(m spec.Model) string {
	text := m.Source + "; " + m.Date
	if m.Published != "" {
		text += "; published as " + m.Published
	}
	if m.Note != "" {
		text += "; " + m.Note
	}
	return text
}

// thousands formats a number with commas: 8,030,261,248.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
