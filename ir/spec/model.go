package spec

import (
	"embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

//go:embed models/*.json
var models embed.FS

// ModelNames are the names of the catalogue, sorted.
func ModelNames() []string {
	files, err := models.ReadDir("models")
	if err != nil {
		panic("spec: embedded models: " + err.Error())
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".json"))
	}
	slices.Sort(names)
	return names
}

// ModelFile is a catalogue row as a config.json.
func ModelFile(name string) ([]byte, error) {
	data, err := models.ReadFile("models/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("no model %s in the catalogue", name)
	}
	return data, nil
}

// LoadModel is the configuration of a catalogue name or of a config.json, without a job.
func LoadModel(name string, read func(string) ([]byte, error)) (*Config, error) {
	var diags ir.Diags
	l := modelLoader{read: read, diags: &diags}
	c := l.load(&strict.Node{Kind: strict.String, Text: name}, name)
	if err := diags.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// modelLoader reads what a job says of its model.
type modelLoader struct {
	read    func(string) ([]byte, error)
	diags   *ir.Diags
	foreign []string // files that other tools wrote
}

// load is the configuration that the job's model stands for; nil if it is wrong.
func (l *modelLoader) load(n *strict.Node, jobName string) *Config {
	before := len(*l.diags)
	m, name := l.mapping(n)
	if m == nil {
		return nil
	}
	family := l.family(m, n)
	if family == "" {
		return nil
	}
	m = l.drop(m, family, families[family].keys)
	d := &strict.Doc{Root: m}
	c := families[family].read(d, l.diags)
	c.at = map[string]ir.Pos{"": n.Pos}
	for _, f := range m.Fields {
		if f.Value.Kind != strict.Null {
			c.at[f.Key] = f.Value.Pos
		}
	}
	if c.Name = name; name == "" {
		c.Name = jobName
	}
	if len(*l.diags) == before {
		c.check(l.diags, families[family].names)
	}
	if len(*l.diags) > before {
		return nil
	}
	return c
}

// mapping is config.json's content, and the model's name if it has one.
func (l *modelLoader) mapping(n *strict.Node) (*strict.Node, string) {
	switch {
	case n.Kind == strict.String:
		return l.named(n)
	case n.Kind != strict.Map:
		l.diags.Addf(n.Pos, strict.WrongType, "model is %v; a name, a path or a mapping is wanted", n.Kind)
		return nil, ""
	}
	base := n.Get("base")
	if base == nil {
		return n, ""
	}
	if base.Kind != strict.String {
		l.diags.Addf(base.Pos, strict.WrongType, "model.base is %v; a name or a path is wanted", base.Kind)
		return nil, ""
	}
	m, name := l.named(base)
	if m == nil {
		return nil, ""
	}
	return override(m, n), name + "+"
}

// override is base with the fields of n.
func override(base, n *strict.Node) *strict.Node {
	m := base.Clone()
	remove := func(keys ...string) {
		m.Fields = slices.DeleteFunc(m.Fields, func(f strict.Field) bool { return slices.Contains(keys, f.Key) })
	}
	if n.Get("rope_parameters") != nil {
		remove("rope_theta", "rope_scaling")
	} else if n.Get("rope_theta") != nil || n.Get("rope_scaling") != nil {
		remove("rope_parameters")
	}
	for _, f := range n.Fields {
		if f.Key != "base" {
			m.Put(f)
		}
	}
	return m
}

// named reads the catalogue or a file.
func (l *modelLoader) named(n *strict.Node) (*strict.Node, string) {
	file, data, err := "models/"+n.Text+".json", []byte(nil), error(nil)
	name := n.Text
	if isModelPath(n.Text) {
		file = inDir(n.Dir, n.Text)
		if filepath.Ext(file) != ".json" {
			file = filepath.Join(file, "config.json")
		}
		if data, err = l.read(file); err != nil {
			l.diags.Addf(n.Pos, NoFile, "model file %s cannot be read: %v", file, err)
			return nil, ""
		}
		if name = strings.TrimSuffix(filepath.Base(file), ".json"); name == "config" {
			name = filepath.Base(filepath.Dir(file))
		}
	} else if data, err = ModelFile(n.Text); err != nil {
		*l.diags = append(*l.diags, ir.Diag{Pos: n.Pos, Code: UnknownModel, Fix: ir.Nearest(n.Text, ModelNames()),
			Msg: fmt.Sprintf("there is no model %s in the catalogue (%s), and it is not the path of a config.json", n.Text, strings.Join(ModelNames(), ", "))})
		return nil, ""
	}
	d, diags := strict.Parse(file, data)
	*l.diags = append(*l.diags, diags...)
	if len(diags) == 0 && d.Root.Kind != strict.Map {
		l.diags.Addf(d.Root.Pos, strict.WrongType, "the file is %v; a mapping is wanted", d.Root.Kind)
	}
	if d.Root.Kind != strict.Map || len(diags) > 0 {
		return nil, ""
	}
	l.foreign = append(l.foreign, file)
	return d.Root, name
}

func isModelPath(s string) bool {
	return strings.ContainsAny(s, `/\`) || strings.HasSuffix(strings.ToLower(s), ".json") || s == "." || s == ".."
}

// inDir is a path relative to the folder of the file that names it.
func inDir(dir, path string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, "/") {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
