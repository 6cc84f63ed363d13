package docs_test

import (
	"slices"
	"strings"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir/spec"
)

// familyTable returns the table of model families.
func familyTable(string) []string {
	out := table("model_type", "architecture", "positions", "norm", "MLP")
	for _, f := range spec.Families() {
		out = append(out, harness.TableRow(code(f.Name), code(f.Architecture), f.Position, f.Norm, f.MLP))
	}
	return out
}

// familyKeyTable returns the table of config.json keys, and the families that read each.
func familyKeyTable(string) []string {
	type key struct {
		families, absent []string
		doc, only        string
	}
	keys, order := map[string]*key{}, []string{}
	for _, f := range spec.Families() {
		for _, k := range f.Keys {
			if keys[k.Key] == nil {
				keys[k.Key] = &key{doc: k.Doc, only: k.Only}
				order = append(order, k.Key)
			}
			keys[k.Key].families = append(keys[k.Key].families, f.Name)
			keys[k.Key].absent = append(keys[k.Key].absent, k.Absent)
		}
	}
	slices.Sort(order)
	out := table("key", "families", "if absent", "meaning")
	for _, name := range order {
		k := keys[name]
		families, doc := strings.Join(k.families, ", "), k.doc
		if len(k.families) == len(spec.Families()) {
			families = "all"
		}
		if k.only != "" {
			doc = strings.TrimPrefix(doc+" *Today: "+k.only+".*", " ")
		}
		out = append(out, harness.TableRow(code(name), families, absentBy(k.families, k.absent), doc))
	}
	return out
}

// absentBy returns the default of an absent key, once if all families agree on it.
func absentBy(families, absent []string) string {
	familiesBy, values := map[string][]string{}, []string{}
	for i, a := range absent {
		if familiesBy[a] == nil && a != "" {
			values = append(values, a)
		}
		familiesBy[a] = append(familiesBy[a], families[i])
	}
	if len(familiesBy) == 1 {
		return absent[0]
	}
	for i, v := range values {
		values[i] = v + " (" + strings.Join(familiesBy[v], ", ") + ")"
	}
	return strings.Join(values, "; ")
}
