package migrate

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/formats"
	"github.com/planc-dev/planc/ir"
)

// plain is a format of the tests: lines "key = value  # comment" with planc's own keys of the plan, and other fields of
// the job by their paths. It cannot express pipelines.
var plain = interop.Format{Name: "plain", Title: "a plain list", Engine: "megatron", Ext: ".txt",
	Recognize: func(f interop.File) interop.Confidence {
		if bytes.HasPrefix(f.Data, []byte("# plain")) {
			return interop.Certain
		}
		return interop.No
	},
	Import: importPlain, Values: plainValues, Write: writePlain}

// TestMain adds the format, and sets the garbage collector as planc does when it searches.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	formats.All = append(formats.All, &plain)
	os.Exit(m.Run())
}

// planKeys are the keys of a plan that the format has.
var planKeys = []string{"tp", "pp", "sp", "zero", "micro_batch", "recompute"}

type plainDoc struct{ lines []string }

// find returns the line of a key; -1 if there is none.
func (d *plainDoc) find(key string) int {
	return slices.IndexFunc(d.lines, func(l string) bool { return strings.HasPrefix(l, key+" = ") })
}

func (d *plainDoc) Get(key string) (string, bool) {
	i := d.find(key)
	if i < 0 {
		return "", false
	}
	_, value, _ := strings.Cut(d.lines[i], " = ")
	value, _, _ = strings.Cut(value, "  #")
	return value, true
}

func (d *plainDoc) Set(v interop.Value) error {
	if i := d.find(v.Key); i >= 0 {
		_, comment, ok := strings.Cut(d.lines[i], "  #")
		d.lines[i] = v.Key + " = " + v.Text
		if ok {
			d.lines[i] += "  #" + comment
		}
		return nil
	}
	d.lines = append(d.lines, v.Key+" = "+v.Text)
	return nil
}

func (d *plainDoc) Remove(key string) error {
	d.lines = slices.DeleteFunc(d.lines, func(l string) bool { return strings.HasPrefix(l, key+" = ") })
	return nil
}

func (d *plainDoc) Bytes() []byte { return []byte(strings.Join(d.lines, "\n") + "\n") }

func importPlain(files []interop.File, o interop.Options) (*interop.Import, error) {
	main := files[0]
	doc := &plainDoc{strings.Split(strings.TrimSuffix(string(main.Data), "\n"), "\n")}
	im := &interop.Import{Format: "plain", Files: []string{main.Name}, Engine: "megatron", Doc: doc,
		Env: map[string]string{}}
	im.SetField(interop.Field{Path: "train.engine", Value: "megatron", From: "the format"})
	for i, line := range doc.lines {
		key, value, ok := strings.Cut(line, " = ")
		value, _, _ = strings.Cut(value, "  #")
		k := interop.Key{Pos: ir.Pos{File: main.Name, Line: i + 1, Column: 1}, Name: key, Value: value}
		switch {
		case !ok:
		case key == "devices":
			if _, err := fmt.Sscan(value, &im.Devices); err != nil {
				return nil, ir.Diags{{Pos: k.Pos, Code: "BadValue", Msg: "devices " + value + " is no number"}}
			}
			im.Account(k, interop.Taken, "")
		case key == "log":
			im.Account(k, interop.NoEffect, "")
		case slices.Contains(planKeys, key):
			im.Take(k, interop.Field{Path: "plan." + key, Value: value})
		case strings.Contains(key, "."):
			im.Take(k, interop.Field{Path: key, Value: value})
		default:
			im.Account(k, interop.Unsupported, "it would change everything")
		}
	}
	if o.Devices > 0 {
		im.Devices = o.Devices
	}
	im.DefaultField("plan.pp", "1", "default of pp")
	return im, nil
}

func plainValues(t *interop.Target) (out []interop.Value) {
	plan := t.Plan.JSON()
	for _, key := range planKeys {
		out = append(out, interop.Value{Key: key, Text: fmt.Sprint(plan[key]), Plan: []string{key}})
	}
	out[2].IsAbsent = !t.Plan.SP
	if t.Plan.TP > 1 {
		out = append(out, interop.Value{Key: "CONNECTIONS", Text: "1", Env: true, Why: "needed with tp"})
	}
	return out
}

func writePlain(t *interop.Target) ([]byte, error) {
	if t.Plan.PP > 1 {
		return nil, ir.Diags{{Code: CannotExport, Msg: fmt.Sprintf("pp %d: a plain list has no pipeline", t.Plan.PP)}}
	}
	d := &plainDoc{[]string{"# plain"}}
	for _, v := range plainValues(t) {
		if !v.IsAbsent && !v.Env {
			d.lines = append(d.lines, v.Key+" = "+v.Text)
		}
	}
	return d.Bytes(), nil
}
