package keytable

import (
	"slices"
	"testing"

	"github.com/planc-dev/planc/interop"
	"pgregory.net/rapid"
)

// A table that is written and read again is the same.
func TestTablesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		copied := Parse(table.Text())
		if copied.Source != table.Source || !slices.Equal(copied.Rows, table.Rows) {
			t.Errorf("%+v becomes %+v", table, copied)
		}
	})
}

// A misspelt name is corrected at each level, also that of a mapping.
func TestMisspeltNamesAreCorrected(t *testing.T) {
	table := Parse("# tool 1\nzero_optimization.stage\tint\t0\ttaken\t\nzero_optimization.old\tremoved\t\tnone\t\n" +
		"optimizer.params.*\t\t\tnone\t\nsteps\tint\t1\tnone\t\n")
	for path, want := range map[string]string{"zero_optimisation.stage": "zero_optimization",
		"zero_optimisation": "zero_optimization", "zero_optimization.stag": "stage", "zero_optimization.odl": "",
		"optimizr.params.lr": "optimizer", "optimizer.parms.lr": "params", "step": "steps", "other.stage": ""} {
		if got := table.Nearest(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// drawTable draws a table whose keys differ.
func drawTable(t *rapid.T) *Table {
	key := rapid.StringMatching(`[a-d](\.[a-d]){0,3}(\.\*)?`)
	keys := rapid.SliceOfNDistinct(key, 0, 12, rapid.ID[string]).Draw(t, "keys")
	text := "# tool 1\n"
	for _, k := range keys {
		kind := rapid.SampledFrom([]string{"", "int", "removed"}).Draw(t, "type")
		use := rapid.SampledFrom([]string{"taken", "planner", "none", "ignored", "unsupported"}).Draw(t, "use")
		text += k + "\t" + kind + "\tnull\t" + use + "\tnote of " + k + "\n"
	}
	return Parse(text)
}

// A path has its own row, or else that of the nearest mapping above it that ends in .* or was removed.
func TestFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		for _, row := range table.Rows {
			if got, ok := table.Find(row.Key); !ok || got != row {
				t.Errorf("%s has the row %+v", row.Key, got)
			}
		}
		path := rapid.StringMatching(`[a-e](\.[a-e]){0,4}`).Draw(t, "path")
		got, ok := table.Find(path)
		if !ok || got.Key == path {
			return
		}
		above, isOpen := split(got.Key)
		isRemoved := got.Type == removed && path[:min(len(path), len(got.Key)+1)] == got.Key+"."
		isBelow := isOpen == "*" && path[:min(len(path), len(above)+1)] == above+"."
		if !isRemoved && !isBelow {
			t.Errorf("%s has the row of %s", path, got.Key)
		}
	})
}

// A newer version of a trainer keeps the decisions about old keys and has none about new ones.
func TestUpdateKeepsDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		rows := append(slices.Clone(drawTable(t).Rows), Row{Key: "new"})
		out := table.Update("tool 2", rows)
		if out.Source != "tool 2" || len(out.Rows) != len(rows) {
			t.Fatalf("%d rows of %s", len(out.Rows), out.Source)
		}
		for i, row := range out.Rows {
			use, note := interop.Unsupported, ""
			if at, ok := table.byKey[row.Key]; ok {
				use, note = table.Rows[at].Use, table.Rows[at].Note
			}
			if row.Key != rows[i].Key || row.Type != rows[i].Type || row.Use != use || row.Note != note {
				t.Errorf("%+v becomes %+v", rows[i], row)
			}
		}
	})
}

// Every file has one place: the model, the main file or the other one.
func TestSplit(t *testing.T) {
	model := interop.File{Name: "config.json", Data: []byte(`{"model_type": "llama", "num_hidden_layers": 2}`)}
	mine := interop.File{Name: "mine.yaml", Data: []byte("a: 1\n")}
	other := interop.File{Name: "ds_config.json", Data: []byte(`{"zero_optimization": {"stage": 3}}`)}
	recognize := func(f interop.File) interop.Confidence {
		if f.Name == mine.Name {
			return interop.Certain
		}
		return interop.No
	}
	rapid.Check(t, func(t *rapid.T) {
		files := rapid.Permutation([]interop.File{model, mine, other}).Draw(t, "files")
		im := &interop.Import{}
		first, ds, diags := Split(im, files, recognize)
		if len(diags) > 0 || first == nil || first.Name != mine.Name || ds == nil || ds.Name != other.Name {
			t.Fatalf("%v, %v, %v", first, ds, diags)
		}
		if f, ok := im.Field("model.num_hidden_layers"); !ok || f.Value != "2" || Layers(im) != 2 {
			t.Errorf("the model has %q layers", f.Value)
		}
	})
	im := &interop.Import{}
	first, ds, diags := Split(im, []interop.File{other}, recognize)
	if first == nil || first.Name != other.Name || ds != nil || len(diags) > 0 {
		t.Errorf("the only file is %v, not the main one: %v, %v", first, ds, diags)
	}
}
