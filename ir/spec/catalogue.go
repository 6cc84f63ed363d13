package spec

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

//go:embed models/*.json
var models embed.FS

// Model is a row of the catalogue: a config.json, and the keys that begin with an underscore, which describe the row.
type Model struct {
	Name      string   `yaml:"-"`
	Family    string   `yaml:"-"`
	Aliases   []string `yaml:"_aliases"`
	Params    int64    `yaml:"_params" min:"1" max:"1e16"`
	Published string   `yaml:"_published"` // the published number of parameters, if it is rounded
	Source    string   `yaml:"_source"`
	Date      string   `yaml:"_date"` // of release, or of the last change of the files: 2024-04 or 2024-04-18
	Note      string   `yaml:"_note"` // a remark about the figures for users; empty for most models
}

// catalogue returns the rows by name. It reads them once.
var catalogue = sync.OnceValue(func() map[string]*Model {
	files, err := models.ReadDir("models")
	if err != nil {
		panic("spec: embedded models: " + err.Error())
	}
	rows := map[string]*Model{}
	for _, f := range files {
		m, err := readModel(strings.TrimSuffix(f.Name(), ".json"))
		if err != nil {
			panic("spec: embedded models: " + err.Error())
		}
		rows[m.Name] = m
	}
	return rows
})

// readModel reads the keys of a row that begin with an underscore.
func readModel(name string) (*Model, error) {
	data, err := models.ReadFile("models/" + name + ".json")
	if err != nil {
		return nil, err
	}
	d, diags := strict.Parse(name+".json", data)
	if err := diags.Err(); err != nil {
		return nil, err
	}
	m := &Model{Name: name}
	if t := d.Root.Get("model_type"); t != nil {
		m.Family = t.Text
	}
	d.Root.Fields = slices.DeleteFunc(d.Root.Fields, func(f strict.Field) bool {
		return !strings.HasPrefix(f.Key, "_")
	})
	return m, d.Decode(m).Err()
}

// ModelNames returns the names in the catalogue, sorted by series and size: gpt2-774m comes before gpt2-1558m.
func ModelNames() []string {
	rows := catalogue()
	var names []string
	for name := range rows {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		seriesA, _, _ := strings.Cut(a, "-")
		seriesB, _, _ := strings.Cut(b, "-")
		if c := strings.Compare(seriesA, seriesB); c != 0 {
			return c
		}
		if d := rows[a].Params - rows[b].Params; d != 0 {
			return int(max(-1, min(1, d)))
		}
		return strings.Compare(a, b)
	})
	return names
}

// ModelInfo returns the row with a name or alias, in any case.
func ModelInfo(name string) (Model, error) {
	name = strings.ToLower(name)
	rows := catalogue()
	if m := rows[name]; m != nil {
		return *m, nil
	}
	for _, m := range rows {
		if slices.Contains(m.Aliases, name) {
			return *m, nil
		}
	}
	return Model{}, fmt.Errorf("the catalogue has no model %s; planc models lists the models", name)
}

// ModelFile returns the config.json of a row.
func ModelFile(name string) ([]byte, error) {
	m, err := ModelInfo(name)
	if err != nil {
		return nil, err
	}
	return models.ReadFile("models/" + m.Name + ".json")
}

// NearestModel returns the name or alias that the user may have meant, "" if none is near. It tries, in this order, the
// nearest name, the smallest model whose name begins with the text, and the smallest model of the nearest family or
// series (so that "lama" finds a Llama).
func NearestModel(name string) string {
	name = strings.ToLower(name)
	names := ModelNames()
	for _, m := range catalogue() {
		names = append(names, m.Aliases...)
	}
	slices.Sort(names)
	if fix := ir.Nearest(name, names); fix != "" || name == "" {
		return fix
	}
	var series []string
	first := map[string]string{} // the smallest model of a series, of a family, or with a prefix
	for _, m := range ModelNames() {
		word, _, _ := strings.Cut(m, "-")
		for _, s := range []string{word, strings.TrimRight(word, "0123456789."), catalogue()[m].Family} {
			if first[s] == "" {
				first[s], series = m, append(series, s)
			}
		}
		if strings.HasPrefix(m, name) && first[name] == "" {
			first[name] = m
		}
	}
	return first[cmp.Or(ir.Nearest(name, series), name)]
}

// HubModel returns the catalogue's name of a model on the Hugging Face hub, such as meta-llama/Meta-Llama-3-8B, "" if
// the catalogue does not have it. It ignores the last words of the hub's name, such as Instruct, hf or v0.1: they
// choose weights, which the catalogue does not contain.
func HubModel(id string) string {
	org, name, ok := strings.Cut(strings.ToLower(id), "/")
	if !ok || org == "" || org == "." || org == ".." || strings.Contains(name, "/") {
		return ""
	}
	words := strings.FieldsFunc(strings.TrimPrefix(name, "meta-"), func(r rune) bool { return r == '-' || r == '_' })
	known := map[string]string{}
	for _, m := range ModelNames() {
		for _, n := range append([]string{m}, catalogue()[m].Aliases...) {
			known[strings.ReplaceAll(n, "-", "")] = m
		}
	}
	for ; len(words) > 0; words = words[:len(words)-1] {
		if m := known[strings.Join(words, "")]; m != "" {
			return m
		}
	}
	return ""
}
