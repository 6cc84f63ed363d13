package lock

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/passes/search"
)

// Codes of errors in a lock.
const (
	// BadLock is reported for a damaged lock: truncated, edited, or with a merge conflict.
	BadLock ir.Code = "BadLock"

	// NewerLock is reported for a lock that a newer planc wrote.
	NewerLock ir.Code = "NewerLock"
)

// IsOurs reports whether a file is a lock of planc, possibly damaged, and not one of another tool.
func IsOurs(data []byte) bool {
	first, _, _ := bytes.Cut(data, []byte("\n"))
	return bytes.Contains(first, []byte("planc")) || bytes.Contains(data, []byte("\ndecided_from:"))
}

// document is the decoded file.
type document struct {
	CostModel   int                       `yaml:"cost_model" min:"1"`
	DecidedFrom map[string]hash           `yaml:"decided_from"`
	Expect      record[Expect]            `yaml:"expect"`
	Files       map[string]hash           `yaml:"files"`
	Gen         record[Gen]               `yaml:"gen"`
	Inputs      map[string]fields         `yaml:"inputs"`
	Plan        plan                      `yaml:"plan"`
	PlanHash    hash                      `yaml:"plan_hash"`
	Planc       string                    `yaml:"planc"`
	Predict     record[costmodel.Predict] `yaml:"predict"`
	Program     hash                      `yaml:"program"`
	Schema      int                       `yaml:"schema" min:"1"`
	Search      record[search.Counts]     `yaml:"search"`
}

// Parse parses a lock. Its errors are [ir.Diags] with positions; their messages recommend the command remedy, such as
// "planc plan --update".
func Parse(file string, data []byte, remedy string) (*File, error) {
	if at := conflictLine(data); at > 0 {
		return nil, ir.Diags{{Pos: ir.Pos{File: file, Line: at, Column: 1}, Code: BadLock,
			Msg: "the lock has a merge conflict here; to search a new plan and write the lock, run " + remedy}}
	}
	doc, diags := strict.Parse(file, data)
	if len(diags) == 0 {
		if n := doc.Root.Get("schema"); n != nil && n.Kind == strict.Int && n.Text != fmt.Sprint(Schema) &&
			len(n.Text) < 10 {
			return nil, ir.Diags{{Pos: n.Pos, Code: NewerLock,
				Msg: fmt.Sprintf("this lock has schema %s of a newer planc (%s), and this planc reads schema %d: use "+
					"the newer planc", n.Text, writerVersion(doc), Schema)}}
		}
		var d document
		diags = append(doc.Decode(&d), missingKeys(doc)...)
		if len(diags) == 0 {
			f := d.toFile(doc)
			diags = f.check()
			if len(diags) == 0 {
				return f, nil
			}
		}
	}
	diags = dropConsequences(diags)
	for i := range diags {
		diags[i].Code = BadLock
		diags[i].Msg += "; to write a new lock, run " + remedy
	}
	return nil, diags.Err()
}

// writerVersion returns the version of planc that wrote a lock.
func writerVersion(doc *strict.Doc) string {
	if n := doc.Root.Get("planc"); n != nil {
		return n.Text
	}
	return "unknown version"
}

var marker = regexp.MustCompile(`(?m)^(<<<<<<<|=======|>>>>>>>|\|\|\|\|\|\|\|)( |\r?$)`)

// conflictLine returns the line of the first marker of a merge conflict; 0 if there is none.
func conflictLine(data []byte) int {
	at := marker.FindIndex(data)
	if at == nil {
		return 0
	}
	return bytes.Count(data[:at[0]], []byte("\n")) + 1
}

// missingKeys reports the keys that a lock must have and this one lacks.
func missingKeys(doc *strict.Doc) (diags ir.Diags) {
	require := func(n *strict.Node, path string, keys []string) {
		for _, key := range keys {
			if n.Kind == strict.Map && n.Get(key) == nil {
				at := n.Pos
				if path != "" {
					at = doc.Pos(path)
				}
				diags.Addf(at, BadLock, "%s"+isMissing, strings.TrimPrefix(path+"."+key, "."))
			}
		}
	}
	require(doc.Root, "", strict.Keys(reflect.TypeFor[document]()))
	for _, path := range []string{"decided_from", "inputs"} {
		if n := doc.Root.Get(path); n != nil {
			require(n, path, Sections)
		}
	}
	if n := doc.Root.Get("plan"); n != nil {
		require(n, "plan", ir.PlanKeys())
	}
	return diags
}

const isMissing = " is missing: the lock was truncated or edited"

// dropConsequences removes errors about missing keys that follow from another error: a misspelt key is also a missing
// one, and after the end of a truncated lock all keys are missing.
func dropConsequences(diags ir.Diags) ir.Diags {
	isAboutMissing := func(d ir.Diag) bool { return strings.HasSuffix(d.Msg, isMissing) }
	hasOther := slices.ContainsFunc(diags, func(d ir.Diag) bool { return !isAboutMissing(d) })
	return slices.DeleteFunc(diags, func(d ir.Diag) bool {
		drop := isAboutMissing(d) && hasOther
		hasOther = hasOther || isAboutMissing(d)
		return drop
	})
}

// toFile converts the document to a File.
func (d *document) toFile(doc *strict.Doc) *File {
	f := &File{CostModel: d.CostModel, DecidedFrom: map[string]string{}, Expect: d.Expect.v,
		Files: map[string]string{}, Gen: d.Gen.v, Inputs: Inputs{},
		Plan: d.Plan.v, PlanHash: string(d.PlanHash), Planc: d.Planc, Predict: d.Predict.v, Program: string(d.Program),
		Search: d.Search.v, doc: doc}
	for k, v := range d.DecidedFrom {
		f.DecidedFrom[k] = string(v)
	}
	for k, v := range d.Files {
		f.Files[k] = string(v)
	}
	for k, v := range d.Inputs {
		f.Inputs[k] = v
	}
	return f
}

// check reports inputs that do not have their hash because they were edited, and unknown sections.
func (f *File) check() (diags ir.Diags) {
	hashes := f.Inputs.Hashes()
	for _, s := range Sections {
		if f.DecidedFrom[s] != hashes[s] {
			diags.Addf(f.Pos("inputs."+s), BadLock,
				"inputs.%s does not match the hash decided_from.%s: the lock was edited", s, s)
		}
	}
	for s := range f.Inputs {
		if !slices.Contains(Sections, s) {
			diags.Addf(f.Pos("inputs."+s), BadLock, "unknown section %s in inputs", s)
		}
	}
	return diags
}

// hash is a SHA-256 in hexadecimal.
type hash string

var hexadecimal = regexp.MustCompile(`^[0-9a-f]{64}$`)

// UnmarshalNode reads 64 hexadecimal digits, even if YAML parses them as a number.
func (h *hash) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	*h = hash(n.Text)
	if !hexadecimal.MatchString(n.Text) {
		c.Addf(n.Pos, BadLock, "%s must be a hash of 64 hexadecimal digits", path)
	}
}

// fields holds texts by key, even if YAML parses them as numbers.
type fields map[string]string

// UnmarshalNode reads a mapping of scalars.
func (f *fields) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	*f = fields{}
	if n.Kind != strict.Map {
		c.Addf(n.Pos, BadLock, "%s is %v; it must be a mapping", path, n.Kind)
		return
	}
	for _, row := range n.Fields {
		if k := row.Value.Kind; k == strict.Map || k == strict.List {
			c.Addf(row.Value.Pos, BadLock, "%s.%s is %v; it must be one value", path, row.Key, k)
		}
		(*f)[row.Key] = row.Value.Text
	}
}

// plan decodes a plan key by key.
type plan struct{ v ir.Plan }

var precisionKeys = []string{"compute", "params", "grads", "reduce", "master", "moments"}

// UnmarshalNode reads the mapping of a plan.
func (p *plan) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	if n.Kind != strict.Map {
		c.Addf(n.Pos, BadLock, "%s is %v; it must be a mapping", path, n.Kind)
		return
	}
	for _, f := range n.Fields {
		var pos ir.Pos
		c.Decode(f.Value, path+"."+f.Key, &position{&pos})
		if !slices.Contains(ir.PlanKeys(), f.Key) {
			c.Fixf(f.Pos, BadLock, ir.Nearest(f.Key, ir.PlanKeys()), "a plan has no key %s", f.Key)
		} else if err := p.v.SetKey(f.Key, textOf(f.Value)); err != nil {
			c.Addf(f.Value.Pos, BadLock, "%s.%v", path, err)
		}
	}
}

// position records the position of a value, so that [strict.Doc.Pos] knows it.
type position struct{ at *ir.Pos }

// UnmarshalNode records the position.
func (p *position) UnmarshalNode(_ *strict.Context, n *strict.Node, _ string) { *p.at = n.Pos }

// textOf returns a value as text, in ir's format: lists with commas, precision in the order of its fields.
func textOf(n *strict.Node) string {
	var parts []string
	switch n.Kind {
	case strict.List:
		for _, item := range n.Items {
			parts = append(parts, item.Text)
		}
	case strict.Map:
		for _, key := range precisionKeys {
			if v := n.Get(key); v != nil {
				parts = append(parts, v.Text)
			}
		}
	default:
		return n.Text
	}
	return strings.Join(parts, ",")
}

// record is a struct with JSON keys, all of which are required.
type record[T any] struct{ v T }

// UnmarshalNode reads the mapping.
func (r *record[T]) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	readRecord(c, n, path, reflect.ValueOf(&r.v).Elem())
}

func readRecord(c *strict.Context, n *strict.Node, path string, v reflect.Value) {
	if n.Kind != strict.Map {
		c.Addf(n.Pos, BadLock, "%s is %v; it must be a mapping", path, n.Kind)
		return
	}
	var keys []string
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("json")
		keys = append(keys, key)
		sub := n.Get(key)
		switch {
		case sub == nil && v.Type().Field(i).Tag.Get("since") != "":
		case sub == nil:
			c.Addf(n.Pos, BadLock, "%s.%s"+isMissing, path, key)
		case v.Field(i).Kind() == reflect.Struct:
			readRecord(c, sub, path+"."+key, v.Field(i))
		default:
			c.Decode(sub, path+"."+key, v.Field(i).Addr().Interface())
		}
	}
	for _, f := range n.Fields {
		if !slices.Contains(keys, f.Key) {
			c.Fixf(f.Pos, BadLock, ir.Nearest(f.Key, keys), "unknown key %s in %s", f.Key, cmp.Or(path, "the lock"))
		}
	}
}
