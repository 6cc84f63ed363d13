package interop_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/accelerate"
	"github.com/planc-dev/planc/interop/deepspeed"
	"github.com/planc-dev/planc/interop/hf"
	"github.com/planc-dev/planc/interop/keytable"
)

var updateKeys = flag.Bool("update-keys", false, "write the tables of keys again, with their uses and notes")

// own are keys of a table that the trainer's parser does not list, because other code reads them.
var own = map[string][]string{
	"deepspeed": {"sequence_parallel_size", "bfloat16.enabled", "optimizer.params.adam_w_mode",
		"optimizer.params.betas", "optimizer.params.eps", "optimizer.params.lr", "optimizer.params.momentum",
		"optimizer.params.weight_decay",
		"scheduler.params.cos_min_ratio", "scheduler.params.total_num_steps", "scheduler.params.warmup_max_lr",
		"scheduler.params.warmup_min_lr", "scheduler.params.warmup_num_steps", "scheduler.params.warmup_type"},
	"accelerate": nil,
	"hf":         nil,
}

// vendorKeys are the keys of a trainer's parser.
type vendorKeys struct {
	Version string
	Keys    []struct {
		Key, Type string
		Default   any
	}
}

// ownDefaults are keys without a default in the parser for which the table has the value that changes nothing.
var ownDefaults = map[string][]string{"accelerate": {"use_cpu"}, "hf": {"tf32"}}

// row returns a key in the form of a table's row.
func (v *vendorKeys) row(i int) keytable.Row {
	k := v.Keys[i]
	text := fmt.Sprint(k.Default)
	if k.Default == nil {
		text = ""
	}
	return keytable.Row{Key: k.Key, Type: k.Type, Default: strings.NewReplacer("True", "true", "False", "false").
		Replace(text)}
}

// Each table of keys has all keys of the trainer's own parser, with their types and defaults, and no others.
func TestTablesHaveTheKeysOfTheParsers(t *testing.T) {
	tables := map[string]*keytable.Table{"deepspeed": deepspeed.Keys, "accelerate": accelerate.Keys, "hf": hf.Keys}
	for name, table := range tables {
		t.Run(name, func(t *testing.T) {
			var vendor vendorKeys
			if refusal := startOracle(t, name).ask(t, map[string]any{"call": "keys"}, &vendor); refusal != "" {
				t.Fatal(refusal)
			}
			known := map[string]bool{}
			for i := range vendor.Keys {
				want := vendor.row(i)
				got, ok := table.Find(want.Key)
				known[want.Key] = true
				if slices.Contains(ownDefaults[name], want.Key) {
					want.Default = got.Default
				}
				if !ok || got.Key != want.Key || got.Type != want.Type || got.Default != want.Default {
					t.Errorf("the table has %+v, %s has %+v", got, vendor.Version, want)
				}
			}
			for _, r := range table.Rows {
				if !known[r.Key] && !strings.HasSuffix(r.Key, ".*") && !slices.Contains(own[name], r.Key) {
					t.Errorf("%s %s does not know %s", name, vendor.Version, r.Key)
				}
			}
			if !strings.Contains(table.Source, " "+vendor.Version+",") {
				t.Errorf("the table is of %s, the parser of %s", table.Source, vendor.Version)
			}
			if *updateKeys {
				rewrite(t, name, table, &vendor)
			}
		})
	}
}

// rewrite writes a table with the keys of the parser.
func rewrite(t *testing.T, name string, table *keytable.Table, vendor *vendorKeys) {
	t.Helper()
	var rows []keytable.Row
	for i := range vendor.Keys {
		row := vendor.row(i)
		if old, ok := table.Find(row.Key); ok && slices.Contains(ownDefaults[name], row.Key) {
			row.Default = old.Default
		}
		rows = append(rows, row)
	}
	for _, r := range table.Rows {
		if strings.HasSuffix(r.Key, ".*") || slices.Contains(own[name], r.Key) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b keytable.Row) int { return strings.Compare(a.Key, b.Key) })
	who, _, _ := strings.Cut(table.Source, " ")
	_, date, _ := strings.Cut(table.Source, ", ")
	text := table.Update(fmt.Sprintf("%s %s, %s", who, vendor.Version, date), rows).Text()
	path := filepath.Join("..", "..", "interop", name, "keys.tsv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every note of a key that is not supported says what the key would change.
func TestUnsupportedKeysHaveNotes(t *testing.T) {
	for name, table := range map[string]*keytable.Table{"deepspeed": deepspeed.Keys, "accelerate": accelerate.Keys,
		"hf": hf.Keys} {
		for _, r := range table.Rows {
			if (r.Use == interop.Unsupported) != (r.Note != "") {
				t.Errorf("%s: %s is %s, with the note %q", name, r.Key, r.Use, r.Note)
			}
		}
	}
}
