package spec

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// LoadModel returns the configuration of a catalogue name or of a config.json, without a job.
func LoadModel(name string, read func(string) ([]byte, error)) (*Config, error) {
	var diags ir.Diags
	l := modelLoader{read: read, diags: &diags}
	c := l.load(&strict.Node{Kind: strict.String, Text: name}, name)
	if err := diags.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// modelLoader reads the model of a job.
type modelLoader struct {
	read           func(string) ([]byte, error)
	diags          *ir.Diags
	otherToolFiles []string // files that other tools wrote
}

// load returns the configuration of the job's model, nil if it has errors.
func (l *modelLoader) load(n *strict.Node, jobName string) *Config {
	before := len(*l.diags)
	m, name := l.mapping(n)
	if m == nil {
		return nil
	}
	f := familyOf(l.family(m, n))
	if f.name == "" {
		return nil
	}
	special, padding := specialTokens(m), paddingToken(m, f)
	m = l.drop(m, f)
	l.nulls(m, f)
	c := f.hf.read(&source{Doc: &strict.Doc{Root: m}, diags: l.diags})
	c.special = special
	c.PaddingRow = paddingRow(padding, c.Vocab)
	if c.PaddingRow > 0 {
		c.special["pad_token_id"] = c.PaddingRow - 1
	}
	c.at = map[string]ir.Pos{"": n.Pos}
	for _, f := range m.Fields {
		if p := f.Value.Pos; f.Value.Kind != strict.Null && !strings.HasPrefix(p.File, inCatalogue) {
			c.at[f.Key] = p
		}
	}
	c.Name = cmp.Or(name, jobName, f.name)
	if len(*l.diags) == before {
		c.check(l.diags, f.names)
	}
	if len(*l.diags) > before {
		return nil
	}
	return c
}

// ropeNulls are the keys of rope_scaling and rope_parameters whose null means that they are absent.
var ropeNulls = strings.Fields("rope_type type attention_factor beta_fast beta_slow mscale mscale_all_dim " +
	"full_attention sliding_attention")

// nulls reports the nulls that transformers rejects, in files that other tools wrote. In a job, null means absent.
func (l *modelLoader) nulls(m *strict.Node, f family) {
	refuse := func(field strict.Field, path string) {
		if field.Value.Kind == strict.Null && slices.Contains(l.otherToolFiles, field.Pos.File) {
			l.diags.Addf(field.Pos, BadModel,
				"%s is null, which transformers rejects: give it a value, or remove the key", path)
		}
	}
	for _, field := range m.Fields {
		if !slices.Contains(strings.Fields(f.nulls), field.Key) {
			refuse(field, field.Key)
		}
		if !strings.HasPrefix(field.Key, "rope_") {
			continue
		}
		for _, inner := range field.Value.Fields {
			if !slices.Contains(ropeNulls, inner.Key) {
				refuse(inner, field.Key+"."+inner.Key)
			}
			for _, inmost := range inner.Value.Fields {
				if !slices.Contains(ropeNulls, inmost.Key) {
					refuse(inmost, field.Key+"."+inner.Key+"."+inmost.Key)
				}
			}
		}
	}
}

// mapping returns the content of config.json, and the model's name if it has one.
func (l *modelLoader) mapping(n *strict.Node) (*strict.Node, string) {
	switch {
	case n.Kind == strict.String:
		return l.named(n)
	case n.Kind != strict.Map:
		l.diags.Addf(n.Pos, strict.WrongType, "model is %v; it must be a name, a path or a mapping", n.Kind)
		return nil, ""
	}
	base := n.Get("base")
	if base == nil {
		return l.textModel(n), ""
	}
	if base.Kind != strict.String {
		l.diags.Addf(base.Pos, strict.WrongType, "model.base is %v; it must be a name or a path", base.Kind)
		return nil, ""
	}
	m, name := l.named(base)
	if m == nil {
		return nil, ""
	}
	return override(m, n), name + "+"
}

// alternatives are pairs of key sets that express the same thing. If an override contains keys of one set, the base's
// keys of the other set are dropped.
var alternatives = [][2][]string{
	{{"rope_parameters"}, {"rope_theta", "rope_scaling", "rope_local_base_freq", "rotary_emb_base", "rotary_pct",
		"partial_rotary_factor"}},
	{{"hidden_size"}, {"n_embed"}},
	{{"n_layer"}, {"num_hidden_layers"}},
	{{"n_head"}, {"num_attention_heads"}},
	{{"num_labels"}, {"id2label"}},
}

// override returns base with the fields of n.
func override(base, n *strict.Node) *strict.Node {
	m := base.Clone()
	for _, pair := range alternatives {
		for i, mine := range pair {
			if slices.ContainsFunc(mine, func(k string) bool { return n.Get(k) != nil }) {
				m.Fields = slices.DeleteFunc(m.Fields, func(f strict.Field) bool {
					return slices.Contains(pair[1-i], f.Key)
				})
			}
		}
	}
	for _, f := range n.Fields {
		if f.Key != "base" {
			m.Put(f)
		}
	}
	return m
}

// inCatalogue is the prefix of positions in catalogue rows. Users have no such file, so errors are reported where the
// row is named.
const inCatalogue = "catalogue:"

// named reads the model that a name or path denotes, from the catalogue or from a file.
func (l *modelLoader) named(n *strict.Node) (*strict.Node, string) {
	file, name, data, err := "", "", []byte(nil), error(nil)
	if l.isJob(n) {
		l.diags.Addf(n.Pos, UnknownModel,
			"%s is a YAML file, not a model. If it is a job, pass it alone: planc plan %s", n.Text,
			inDir(n.Dir, n.Text))
		return nil, ""
	}
	if isModelPath(n.Text) {
		file = inDir(n.Dir, n.Text)
		if filepath.Ext(file) != ".json" {
			file = filepath.Join(file, "config.json")
		}
		data, err = l.read(file)
		if err != nil {
			l.diags.Addf(n.Pos, NoFile, "model file %s cannot be read: %s%s", file, ir.FileReason(err), hubHint(n.Text))
			(*l.diags)[len(*l.diags)-1].Fix = HubModel(n.Text)
			return nil, ""
		}
		name = strings.TrimSuffix(filepath.Base(file), ".json")
		if name == "config" {
			name = filepath.Base(filepath.Dir(file))
			if name == "." || name == ".." || name == string(filepath.Separator) {
				name = "" // the folder has no name that could name the model
			}
		}
	} else {
		row, err := ModelInfo(n.Text)
		if err != nil {
			fix := NearestModel(n.Text)
			// there is a folder of that name
			if _, err := l.read(inDir(n.Dir, filepath.Join(n.Text, "config.json"))); err == nil {
				fix = "./" + n.Text
			}
			msg := fmt.Sprintf("%s is neither a model of the catalogue (planc models lists them) nor the path "+
				"of a config.json", n.Text)
			*l.diags = append(*l.diags, ir.Diag{Pos: n.Pos, Code: UnknownModel, Fix: fix, Msg: msg})
			return nil, ""
		}
		name, file = row.Name, inCatalogue+row.Name
		data, err = models.ReadFile("models/" + row.Name + ".json")
		if err != nil {
			panic("spec: embedded models: " + err.Error())
		}
	}
	d, diags := strict.Parse(file, data)
	*l.diags = append(*l.diags, diags...)
	if len(diags) == 0 && d.Root.Kind != strict.Map {
		l.diags.Addf(d.Root.Pos, strict.WrongType, "the file is %v; it must be a mapping", d.Root.Kind)
	}
	if d.Root.Kind != strict.Map || len(diags) > 0 {
		return nil, ""
	}
	l.otherToolFiles = append(l.otherToolFiles, file)
	return l.textModel(d.Root), name
}

// isJob reports whether the name of a model is a YAML file, as jobs are.
func (l *modelLoader) isJob(n *strict.Node) bool {
	if ext := filepath.Ext(n.Text); ext != ".yaml" && ext != ".yml" {
		return false
	}
	_, err := l.read(inDir(n.Dir, n.Text))
	return err == nil
}

// hubHint returns a hint for a path that looks like a model on a hub: owner/name.
func hubHint(name string) string {
	if owner, rest, ok := strings.Cut(name, "/"); ok && owner != "" && owner[0] != '.' &&
		!strings.Contains(rest, "/") && filepath.Ext(rest) != ".json" {
		return "; planc downloads nothing: name a folder that contains the model's config.json, or a model " +
			"that planc models lists"
	}
	return ""
}

func isModelPath(s string) bool {
	return strings.ContainsAny(s, `/\`) || strings.HasSuffix(strings.ToLower(s), ".json") || s == "." || s == ".."
}

// inDir returns a path that is relative to the folder of the file that contains it.
func inDir(dir, path string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, "/") {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
