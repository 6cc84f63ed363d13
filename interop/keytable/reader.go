package keytable

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Reader reads a file's keys and records what each means.
type Reader struct {
	Doc    *tree.Doc
	Table  *Table
	Import *interop.Import
	Diags  ir.Diags
	// Auto is the word that leaves a value to something else: "auto" in DeepSpeed's files. "" if there is none.
	Auto string
	// TruthWords are other words for true and false. Nil: there are none.
	TruthWords map[string]bool

	fills    map[string]fill
	outcomes map[string]outcome
	absent   []interop.Key
}

// fill is the value of a key that is left to something else.
type fill struct {
	value *tree.Node
	from  string
}

// outcome is what a key means.
type outcome struct {
	use    interop.Use
	note   string
	fields []interop.Field
	as     []string // what the key says that is no field of the job
}

// NewReader returns a reader of a file.
func NewReader(doc *tree.Doc, table *Table, im *interop.Import) *Reader {
	return &Reader{Doc: doc, Table: table, Import: im, fills: map[string]fill{},
		outcomes: map[string]outcome{}}
}

// Fill gives a key that is left to something else its value, as JSON, and says where it comes from.
func (r *Reader) Fill(path, value, from string) {
	doc, diags := tree.Parse(tree.JSON, r.Doc.File, []byte(`{"value": `+value+`}`))
	if len(diags) > 0 {
		return
	}
	r.fills[path] = fill{doc.Root.Get("value"), from}
}

// Node returns the value at a path; nil if it is absent, null or left to something that is not known.
func (r *Reader) Node(path string) *tree.Node {
	if r.IsAuto(path) {
		return r.fills[path].value
	}
	n := r.Doc.Root.Find(path)
	if n == nil || n.Kind == strict.Null {
		return nil
	}
	return n
}

// IsAuto reports whether a value is left to something else.
func (r *Reader) IsAuto(path string) bool {
	n := r.Doc.Root.Find(path)
	return n != nil && r.Auto != "" && n.Kind == strict.String && n.Text == r.Auto
}

// Has reports whether the file has a value at a path.
func (r *Reader) Has(path string) bool { return r.Node(path) != nil }

// Int returns a whole number. A wrong value is reported.
func (r *Reader) Int(path string) (value int, ok bool) {
	n := r.Node(path)
	if n == nil {
		return 0, false
	}
	value, ok = n.Int()
	if number, err := strconv.Atoi(strings.TrimSpace(n.Text)); err == nil && n.Kind == strict.String && !isTOML(r.Doc) {
		value, ok = number, true
	}
	size, err := strconv.ParseFloat(strings.TrimSpace(n.Text), 64)
	isNumber := n.Kind == strict.Int || n.Kind == strict.Float || ok
	switch {
	case isNumber && (err == nil || math.IsInf(size, 0)) && math.Abs(size) > mostCount:
		r.Wrong(path, strict.OutOfRange, "", "%s is %s; it must be at most %d", path, describe(n), int64(mostCount))
		return 0, false
	case !ok:
		r.Wrong(path, strict.WrongType, "", "%s is %s; it must be an integer", path, describe(n))
	}
	return value, ok
}

// isTOML reports whether a file is TOML, which has types: a text of digits is no number in it.
func isTOML(doc *tree.Doc) bool { return doc.Syntax == tree.TOML }

// Positive returns a whole number that must be at least 1. A wrong value is reported.
func (r *Reader) Positive(path string) (value int, ok bool) {
	value, ok = r.Int(path)
	if ok && value < 1 {
		r.Wrong(path, strict.OutOfRange, "", "%s is %d; it must be at least 1", path, value)
		return 0, false
	}
	return value, ok
}

// Float returns a number. A wrong value is reported.
func (r *Reader) Float(path string) (value float64, ok bool) {
	n := r.Node(path)
	if n == nil {
		return 0, false
	}
	value, err := strconv.ParseFloat(strings.TrimSpace(n.Text), 64)
	if err == nil && n.Kind != strict.Bool && (n.Kind != strict.String || !isTOML(r.Doc)) {
		return value, true
	}
	r.Wrong(path, strict.WrongType, "", "%s is %s; it must be a number", path, describe(n))
	return 0, false
}

// Bool returns true or false, also from text: "true". A wrong value is reported.
func (r *Reader) Bool(path string) (value, ok bool) {
	n := r.Node(path)
	if n == nil {
		return false, false
	}
	if value, ok := n.Bool(); ok {
		return value, true
	}
	if value, err := strconv.ParseBool(strings.ToLower(n.Text)); err == nil {
		return value, true
	}
	if value, ok := r.TruthWords[strings.ToLower(n.Text)]; ok {
		return value, true
	}
	r.Wrong(path, strict.WrongType, "", "%s is %s; it must be true or false", path, describe(n))
	return false, false
}

// IsTrue reports whether a value is true.
func (r *Reader) IsTrue(path string) bool {
	value, _ := r.Bool(path)
	return value
}

// Text returns the text of a scalar, "" if it is absent.
func (r *Reader) Text(path string) string {
	n := r.Node(path)
	if n == nil || n.Kind == strict.Map || n.Kind == strict.List {
		return ""
	}
	return n.Text
}

// OneOf returns a text that must be one of some words, whatever its case. A wrong value is reported.
func (r *Reader) OneOf(path string, words ...string) (word string, ok bool) {
	n := r.Node(path)
	if n == nil {
		return "", false
	}
	for _, w := range words {
		if strings.EqualFold(w, n.Text) && n.Kind != strict.Map && n.Kind != strict.List {
			return w, true
		}
	}
	r.Wrong(path, strict.UnknownValue, ir.Nearest(n.Text, words), "%s is %s; use one of %s", path, describe(n),
		strings.Join(words, ", "))
	return "", false
}

// describe returns a value as messages name it.
func describe(n *tree.Node) string {
	switch n.Kind {
	case strict.Map, strict.List, strict.Null:
		return n.Kind.String()
	case strict.String:
		return strconv.Quote(n.Text)
	}
	return n.Text
}

// Wrong reports an input error at a value. If the value is absent, the error is at the nearest mapping that would have
// it.
func (r *Reader) Wrong(path string, code ir.Code, fix, format string, args ...any) {
	d := ir.Diag{Pos: r.Doc.Root.Nearest(path), Code: code, Msg: fmt.Sprintf(format, args...), Fix: fix}
	if !slices.Contains(r.Diags, d) {
		r.Diags = append(r.Diags, d) // a value may be read several times
	}
}

// Take records that a key sets fields of the job. Without fields, the key says what another key sets.
func (r *Reader) Take(path string, fields ...interop.Field) {
	o := r.outcomes[path]
	o.use = interop.Taken
	for _, f := range fields {
		if from := r.fills[path].from; from != "" && r.IsAuto(path) {
			f.From = from + " (" + path + " is auto)"
		}
		if f.From == "" {
			f.From = path
		}
		if n := r.Doc.Root.Find(path); n != nil {
			f.Pos = n.Pos
		}
		r.Import.SetField(f)
		o.fields = append(o.fields, f)
	}
	r.outcomes[path] = o
}

// TakeInt records that a key sets a field to a number.
func (r *Reader) TakeInt(path, field string, value int) {
	r.Take(path, interop.Field{Path: field, Value: strconv.Itoa(value)})
}

// TakeDevices records that keys say the number of devices and of nodes, which the file's job leaves to the cluster.
func TakeDevices(r *Reader, devicesKey string, devices int, nodesKey string, nodes int) {
	r.outcomes[devicesKey] = outcome{use: interop.Taken, as: []string{fmt.Sprintf("devices: %d", devices)}}
	r.outcomes[nodesKey] = outcome{use: interop.Taken, as: []string{fmt.Sprintf("nodes: %d", nodes)}}
}

// Account records that a key, or all keys below it, set no field of the job.
func (r *Reader) Account(path string, use interop.Use, note string) {
	r.outcomes[path] = outcome{use: use, note: note}
}

// Ignore accounts for a key that the table does not have and that the trainer ignores. If another key is probably
// meant, a warning names it, once for all keys of a mapping.
func Ignore(r *Reader, path, tool string) {
	r.Account(path, interop.IgnoredByTool, tool+" does not know it")
	if fix := r.Table.Nearest(path); fix != "" {
		unknown := r.Table.Unknown(path)
		r.Import.Warn(r.Doc.Root.KeyPos(unknown), "%s does not know %s and ignores it; did you mean %s?", tool, unknown,
			fix)
	}
}

// Absent accounts for a key that the file does not have and that the planner decides.
func (r *Reader) Absent(name, note string) {
	r.absent = append(r.absent, interop.Key{Pos: ir.Pos{File: r.Doc.File}, Name: name, Note: note})
}

// Finish accounts for every key of the file in its order: as recorded, else by the table. unknown says what happens to
// keys that the table does not have.
func (r *Reader) Finish(unknown func(path string, f *tree.Field)) {
	r.Doc.Root.Walk(func(path string, f *tree.Field) {
		row, ok := r.Table.Find(path)
		o, decided := r.outcome(path)
		if !ok && !decided {
			unknown(path, f)
			o, decided = r.outcome(path)
		}
		if ok && !decided {
			r.checkType(path, row, f.Value)
			o = r.byRow(path, row)
		}
		k := interop.Key{Pos: f.Pos, Name: path, Value: f.Value.Flow(), As: o.as}
		if o.use == interop.Taken {
			r.Import.Take(k, o.fields...)
			return
		}
		r.Import.Account(k, o.use, o.note)
	})
	for _, k := range r.absent {
		r.Import.Account(k, interop.Planned, k.Note)
	}
}

// outcome returns what is recorded for a path or for a mapping above it.
func (r *Reader) outcome(path string) (o outcome, ok bool) {
	for at := path; ; {
		if o, ok := r.outcomes[at]; ok {
			return o, true
		}
		i := strings.LastIndexByte(at, '.')
		if i < 0 {
			return outcome{}, false
		}
		at = at[:i]
	}
}

// byRow returns the use of a key that the reader has not decided. A key that it usually takes has no effect then, or
// the value is left to the planner.
func (r *Reader) byRow(path string, row Row) outcome {
	switch {
	case r.IsAuto(path) && row.Use != interop.NoEffect:
		return outcome{use: interop.Planned, note: row.Note}
	case row.Use == interop.Taken:
		return outcome{use: interop.NoEffect, note: row.Note}
	case row.Use == interop.Unsupported && isDefault(row, r.Node(path)):
		return outcome{use: interop.NoEffect, note: "the default"}
	}
	return outcome{use: row.Use, note: row.Note}
}

// isDefault reports whether a value is the trainer's default, or null.
func isDefault(row Row, n *tree.Node) bool {
	if n == nil {
		return true
	}
	a, errA := strconv.ParseFloat(n.Text, 64)
	b, errB := strconv.ParseFloat(row.Default, 64)
	return row.Default != "" && (strings.EqualFold(n.Text, row.Default) || errA == nil && errB == nil && a == b)
}

// AccountAs accounts for another spelling of a key by the key's row.
func AccountAs(r *Reader, path string, row Row, n *tree.Node) {
	r.checkType(path, row, n)
	r.outcomes[path] = r.byRow(path, row)
}

// checkType reports a value that does not have the type of its row, unless an error of the value is reported.
func (r *Reader) checkType(path string, row Row, n *tree.Node) {
	isReported := slices.ContainsFunc(r.Diags, func(d ir.Diag) bool { return d.Pos == n.Pos })
	if r.Node(path) != n || isReported {
		return
	}
	isMap, isList := n.Kind == strict.Map, n.Kind == strict.List
	switch row.Type {
	case "bool":
		r.Bool(path)
	case "int":
		r.Int(path)
	case "float":
		r.Float(path)
	case "str":
		if isMap || isList {
			r.Wrong(path, strict.WrongType, "", "%s is %s; it must be text", path, describe(n))
		}
	case "dict":
		if !isMap && !strings.HasSuffix(row.Key, ".*") {
			r.Wrong(path, strict.WrongType, "", "%s is %s; it must be a mapping", path, describe(n))
		}
	}
}

// Err returns the input errors.
func (r *Reader) Err() error { return r.Diags.Err() }
