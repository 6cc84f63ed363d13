// Package keytable holds what formats of nested keys (JSON, YAML, TOML) have in common: a table of all keys that a
// trainer knows, and a Reader that accounts for every key of a file by that table.
package keytable

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// Row is a key that a trainer knows.
type Row struct {
	// Key is a dotted path. A key that ends in .* stands for all keys below it.
	Key string
	// Type is bool, int, float, str, dict or list; "" or any if the trainer accepts several, and removed if it refuses
	// the key since some version.
	Type    string
	Default string
	// Use is what import does with the key, unless the reader of the format decides otherwise.
	Use  interop.Use
	Note string
}

// Table is all keys of a trainer.
type Table struct {
	// Source names the trainer with its version and the date: "DeepSpeed 0.19.8, 2026-11-26".
	Source string
	Rows   []Row
	byKey  map[string]int
}

// removed is the type of keys that a trainer refuses since some version.
const removed = "removed"

// uses maps the words of a table to uses.
var uses = map[string]interop.Use{"taken": interop.Taken, "planner": interop.Planned, "none": interop.NoEffect,
	"ignored": interop.IgnoredByTool, "unsupported": interop.Unsupported}

// words maps uses to the words of a table.
var words = func() map[interop.Use]string {
	out := map[interop.Use]string{}
	for word, use := range uses {
		out[use] = word
	}
	return out
}()

// Parse reads a table of five columns: key, type, default, use, note. The first line is the source after "# ". It
// panics on a wrong table, which is embedded.
func Parse(tsv string) *Table {
	t := &Table{byKey: map[string]int{}}
	for i, line := range strings.Split(strings.TrimRight(tsv, "\n"), "\n") {
		if i == 0 {
			t.Source = strings.TrimPrefix(line, "# ")
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != 5 || uses[cells[3]] == "" {
			panic(fmt.Sprintf("keytable: line %d of the table of %s is %q", i+1, t.Source, line))
		}
		t.byKey[cells[0]] = len(t.Rows)
		t.Rows = append(t.Rows, Row{cells[0], cells[1], cells[2], uses[cells[3]], cells[4]})
	}
	return t
}

// Text returns the table as Parse reads it.
func (t *Table) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", t.Source)
	for _, r := range t.Rows {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\n", r.Key, r.Type, r.Default, words[r.Use], r.Note)
	}
	return b.String()
}

// Find returns the row of a path: its own, or that of the nearest key above it that ends in .* or has
// been removed.
func (t *Table) Find(path string) (row Row, ok bool) {
	if i, ok := t.byKey[path]; ok {
		return t.Rows[i], true
	}
	for above := path; ; {
		i := strings.LastIndexByte(above, '.')
		if i < 0 {
			return Row{}, false
		}
		above = above[:i]
		if at, ok := t.byKey[above+".*"]; ok {
			return t.Rows[at], true
		}
		if at, ok := t.byKey[above]; ok && t.Rows[at].Type == removed {
			return t.Rows[at], true
		}
	}
}

// Nearest returns the key of the same mapping that a misspelt path probably means, or the mapping if that is
// misspelt; "" if there is none.
func (t *Table) Nearest(path string) string {
	return t.nearest(path, func(r Row) bool { return r.Type != removed })
}

// NearestTaken returns the key that Nearest returns, but only of keys that set fields of the job.
func (t *Table) NearestTaken(path string) string {
	return t.nearest(path, func(r Row) bool { return r.Use == interop.Taken })
}

// nearest returns what Nearest returns, of the rows that can be meant.
func (t *Table) nearest(path string, canBe func(Row) bool) string {
	above, _ := split(path)
	if above != "" && !t.hasSection(above) {
		return t.nearest(above, canBe)
	}
	name := strings.TrimPrefix(path, above+".")
	var names []string
	for _, r := range t.Rows {
		below, ok := r.Key, above == ""
		if !ok {
			below, ok = strings.CutPrefix(r.Key, above+".")
		}
		key, _, _ := strings.Cut(below, ".")
		if ok && key != "*" && canBe(r) {
			names = append(names, key)
		}
	}
	return ir.Nearest(name, names)
}

// Unknown returns what of a path that the table does not have is unknown: the outermost mapping, or else the key.
func (t *Table) Unknown(path string) string {
	if above, _ := split(path); above != "" && !t.hasSection(above) {
		return t.Unknown(above)
	}
	return path
}

// hasSection reports whether a path is a known key or has known keys below it.
func (t *Table) hasSection(path string) bool {
	_, ok := t.Find(path)
	return ok || slices.ContainsFunc(t.Rows, func(r Row) bool { return strings.HasPrefix(r.Key, path+".") })
}

// split returns the mapping of a path and the name of its last key.
func split(path string) (above, name string) {
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)], path[i+1:]
}

// Update returns the table with the keys, types and defaults of another version of the trainer. Uses and notes are
// kept; new keys are not supported until somebody decides.
func (t *Table) Update(source string, keys []Row) *Table {
	out := &Table{Source: source, byKey: map[string]int{}}
	for _, k := range keys {
		k.Use, k.Note = interop.Unsupported, ""
		if i, ok := t.byKey[k.Key]; ok {
			k.Use, k.Note = t.Rows[i].Use, t.Rows[i].Note
		}
		out.byKey[k.Key] = len(out.Rows)
		out.Rows = append(out.Rows, k)
	}
	return out
}
