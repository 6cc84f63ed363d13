package interop_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/bridge"
	"github.com/planc-dev/planc/interop/lightning"
	"github.com/planc-dev/planc/interop/tree"
)

// checkImported compares the plan that a file is imported as with a draw's.
func checkImported(t *testing.T, d *draw, im *interop.Import, file []byte) {
	t.Helper()
	got := importedKeys(im)
	for _, key := range []string{"axis_order", "moe_slack"} {
		delete(got, key)
	}
	want := planKeys(&d.plan, slices.Collect(maps.Keys(got)))
	if got["recompute_split"] != "" {
		want["recompute_split"] = map[bool]string{true: "true", false: "false"}[d.plan.RecomputeSplit]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s: imported otherwise: %s\n%s", d, diff, file)
	}
}

// Every plan that Megatron-LM can run is written as YAML of Megatron-Bridge that is imported as the plan, and says it
// when it is edited into a file of another plan.
func TestBridgeSaysThePlan(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(24, 6))
	plans := drawsOr(400)
	var other []byte
	otherExperts := false
	for n := 0; n < plans; {
		d := drawLegal(t, r, jobLimits{engine: "megatron"})
		file, err := bridge.Format.Write(d.target())
		if err != nil {
			continue
		}
		n++
		devices := interop.Options{Devices: d.question.Hardware.Devices()}
		im, err := bridge.Format.Import([]interop.File{{Name: "run_config.yaml", Data: file}}, devices)
		if err != nil {
			t.Fatalf("%s: %v\n%s", d, err, file)
		}
		checkImported(t, d, im, file)
		hasExperts := d.question.Job.Config.Experts > 0
		if other != nil && hasExperts == otherExperts {
			edited, diags := tree.Parse(tree.YAML, "run_config.yaml", other)
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			editPlan(t, edited, bridge.Format.Values(d.target()))
			for _, key := range []string{"num_layers", "seq_length"} { // the other file has another model
				text, _ := im.Doc.Get("model." + key)
				editPlan(t, edited, []interop.Value{{Key: "model." + key, Text: text}})
			}
			im, err := bridge.Format.Import([]interop.File{{Name: "run_config.yaml", Data: edited.Bytes()}}, devices)
			if err != nil {
				t.Fatalf("%s: %v\n%s", d, err, edited.Bytes())
			}
			checkImported(t, d, im, edited.Bytes())
		}
		other, otherExperts = file, hasExperts
	}
}

// editPlan sets the values of a plan.
func editPlan(t *testing.T, doc interop.Document, values []interop.Value) {
	t.Helper()
	for _, v := range values {
		if v.Env {
			continue
		}
		if err := doc.Set(v); err != nil {
			t.Fatalf("%+v: %v", v, err)
		}
	}
}

// Every plan that Lightning can run is said by the keys of LightningCLI, in a file that had another strategy.
func TestLightningSaysThePlan(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(24, 7))
	plans := drawsOr(200)
	bases := []string{"trainer:\n  strategy: auto # ours\n", "trainer:\n  strategy: deepspeed_stage_2\n  devices: 3\n",
		"trainer:\n  strategy:\n    class_path: lightning.pytorch.strategies.FSDPStrategy\n    init_args:\n" +
			"      sharding_strategy: HYBRID_SHARD\n      activation_checkpointing_policy: [m.Block]\n" +
			"      state_dict_type: full\n"}
	for n := 0; n < plans; {
		d := drawLegal(t, r, jobLimits{engine: pick(r, "fsdp", "fsdp", "deepspeed"), families: []string{"llama",
			"gpt2"}})
		if _, err := lightning.Format.Write(d.target()); err != nil {
			continue
		}
		n++
		im, err := lightning.Format.Import([]interop.File{{Name: "config.yaml", Data: []byte(pick(r, bases...))}},
			interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		editPlan(t, im.Doc, lightning.Format.Values(d.target()))
		file := im.Doc.Bytes()
		im, err = lightning.Format.Import([]interop.File{{Name: "config.yaml", Data: file}}, interop.Options{})
		if err != nil {
			t.Fatalf("%s: %v\n%s", d, err, file)
		}
		got := importedKeys(im)
		if d.plan.TP > 1 { // the model's own code decides what is sharded
			delete(got, "zero")
			delete(got, "zero_group")
		}
		if !bytes.Contains(file, []byte("FSDPStrategy")) { // and what is recomputed
			delete(got, "recompute")
		}
		want := planKeys(&d.plan, slices.Collect(maps.Keys(got)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: %s\n%s", d, diff, file)
		}
	}
}

// The tables of keys are those of the projects' source.
func TestFieldsAreCurrent(t *testing.T) {
	o := startOracle(t, "fields", namesFolder(t))
	for name, table := range map[string]string{"lightning": lightning.Keys.Source, "bridge": bridge.Keys.Source} {
		var answer struct{ Keys [][3]string }
		if refusal := o.ask(t, name, &answer); refusal != "" {
			t.Fatal(refusal)
		}
		for _, k := range answer.Keys {
			rows := lightning.Keys
			if name == "bridge" {
				rows = bridge.Keys
			}
			row, ok := rows.Find(k[0])
			if !ok || row.Key == k[0] && row.Default != k[2] {
				t.Errorf("%s: %s is %v, and the table has %v", table, k[0], k, row)
			}
		}
	}
}

// namesFolder returns the folder of the projects of which only the source is read: names in the folder that
// scripts/oracle makes.
func namesFolder(t *testing.T) string {
	t.Helper()
	python := os.Getenv("PLANC_ORACLE")
	folder := filepath.Join(filepath.Dir(filepath.Dir(python)), "names")
	if _, err := os.Stat(folder); python != "" && err != nil {
		t.Skipf("%s is missing: run scripts/oracle again", folder)
	}
	return folder
}
