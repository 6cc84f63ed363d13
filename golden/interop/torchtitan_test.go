package interop_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/torchtitan"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

// titanFamilies are the models of torchtitan that are drawn.
var titanFamilies = []string{"llama", "llama", "qwen3_moe"}

// titanAnswer is what torchtitan makes of a file.
type titanAnswer struct {
	Config struct {
		Training struct {
			Local  int    `json:"local_batch_size"`
			Global int    `json:"global_batch_size"`
			SeqLen int    `json:"seq_len"`
			Mixed  string `json:"mixed_precision_param"`
		}
		Parallelism struct {
			Schedule string `json:"pipeline_parallel_schedule"`
			Micro    int    `json:"pipeline_parallel_microbatch_size"`
			Rotate   string `json:"context_parallel_rotate_method"`
			Reshard  string `json:"fsdp_reshard_after_forward"`
		}
		AC struct {
			Mode   string
			Option string `json:"selective_ac_option"`
		} `json:"activation_checkpoint"`
	}
	Dims struct {
		Replicate int `json:"dp_replicate"`
		Shard     int `json:"dp_shard"`
		CP, TP    int
		PP, EP    int
		ETP       int
	}
	Accumulation int
	FSDP         bool
	Split        [][]string
}

// askTitan asks torchtitan about a file for a draw's hardware and model.
func askTitan(t *testing.T, o *oracle, d *draw, file []byte, quick bool) (titanAnswer, string) {
	t.Helper()
	var a titanAnswer
	c := d.question.Job.Config
	refusal := o.ask(t, map[string]any{"toml": string(file), "world": d.question.Hardware.Devices(), "layers": c.Layers,
		"kv_heads": c.KVHeads, "quick": quick}, &a)
	return a, refusal
}

// titanPlan returns what torchtitan's answer says of a plan.
func titanPlan(a *titanAnswer, largest int) map[string]string {
	dims := &a.Dims
	p := map[string]string{"dp": fmt.Sprint(dims.Replicate * dims.Shard), "tp": fmt.Sprint(dims.TP),
		"pp": fmt.Sprint(dims.PP), "cp": fmt.Sprint(dims.CP), "zero_group": "1", "zero": "0",
		"sp": fmt.Sprint(dims.TP > 1), "cp_kind": "none", "schedule": "none"}
	if a.FSDP {
		p["zero_group"] = fmt.Sprint(dims.Shard * dims.CP)
		p["zero"] = map[string]string{"default": "3", "always": "3", "never": "2"}[a.Config.Parallelism.Reshard]
		if dims.PP > 1 {
			p["zero"] = "1"
		}
	}
	if dims.CP > 1 {
		p["cp_kind"] = map[string]string{"allgather": "gather", "alltoall": "ring"}[a.Config.Parallelism.Rotate]
	}
	micro, count := a.Config.Training.Local, a.Accumulation
	if dims.PP > 1 {
		p["schedule"] = map[string]string{"1f1b": "1f1b", "interleaved1f1b": "interleaved", "gpipe": "gpipe",
			"zbvzerobubble": "zb-v"}[strings.ToLower(a.Config.Parallelism.Schedule)]
		micro = a.Config.Parallelism.Micro
		count *= a.Config.Training.Local / micro
		var counts []string
		largest = 0
		for _, chunk := range a.Split {
			layers := slices.DeleteFunc(chunk, func(name string) bool { return !strings.HasPrefix(name, "layers.") })
			counts = append(counts, fmt.Sprint(len(layers)))
			largest = max(largest, len(layers))
		}
		p["stage_layers"] = strings.Join(counts, ",")
	}
	p["micro_batch"], p["micro_batches"] = fmt.Sprint(micro), fmt.Sprint(count)
	p["recompute"], p["recompute_layers"] = a.Config.AC.Mode, "0"
	switch {
	case a.Config.AC.Mode == "full":
		p["recompute_layers"] = fmt.Sprint(largest)
	case a.Config.AC.Mode == "selective" && a.Config.AC.Option == "op":
		p["recompute_layers"] = fmt.Sprint(largest)
	case a.Config.AC.Mode == "selective":
		every := 0
		fmt.Sscan(a.Config.AC.Option, &every)
		p["recompute"], p["recompute_layers"] = "full", fmt.Sprint(largest/max(1, every))
	}
	return p
}

// comparable returns the keys of a plan that two formats share.
func planKeys(p *ir.Plan, keys []string) map[string]string {
	all := map[string]string{"dp": fmt.Sprint(p.DP), "tp": fmt.Sprint(p.TP), "pp": fmt.Sprint(p.PP),
		"cp": fmt.Sprint(p.CP), "ep": fmt.Sprint(p.EP), "etp": fmt.Sprint(p.ETP), "vpp": fmt.Sprint(p.VPP),
		"sp": fmt.Sprint(p.SP), "cp_kind": p.CPKind, "zero": fmt.Sprint(p.Zero), "zero_group": fmt.Sprint(p.ZeroGroup),
		"schedule": p.Schedule, "micro_batch": fmt.Sprint(p.MicroBatch), "micro_batches": fmt.Sprint(p.MicroBatches),
		"recompute": p.Recompute, "recompute_layers": fmt.Sprint(p.RecomputeLayers),
		"recompute_every": fmt.Sprint(p.RecomputeEvery), "recompute_split": fmt.Sprint(p.RecomputeSplit),
		"stage_layers": p.StageLayers}
	out := map[string]string{}
	for _, key := range keys {
		out[key] = all[key]
	}
	return out
}

// importedKeys returns the plan's keys that an import pins, in the plan's own spelling.
func importedKeys(im *interop.Import) map[string]string {
	out := map[string]string{}
	for _, f := range im.Fields {
		if key, ok := strings.CutPrefix(f.Path, "plan."); ok {
			out[key] = strings.NewReplacer("[", "", "]", "", " ", "").Replace(f.Value)
		}
	}
	return out
}

// configFile returns a draw's model as a config.json.
func configFile(d *draw) interop.File {
	return interop.File{Name: "config.json", Data: d.question.Job.Config.HF(ir.BF16)}
}

// Every plan that torchtitan can run is exported to a file that its own parser and checks accept, that says the plan to
// them, and that is imported as the plan.
func TestTorchtitanRunsExportedPlans(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(24, 3))
	plans := drawsOr(150)
	var o *oracle
	if os.Getenv("PLANC_ORACLE") != "" {
		o = startOracle(t, "torchtitan")
	}
	refused := map[string]int{}
	for n := 0; n < plans; {
		d := drawLegal(t, r, jobLimits{engine: "fsdp", families: titanFamilies})
		if d.plan.Zero == 1 && d.plan.PP == 1 {
			d.plan.Zero = pick(r, 2, 3) // FSDP has no ZeRO 1
			if len(d.broken()) > 0 {
				continue
			}
		}
		d.plan.SP = d.plan.TP > 1
		file, err := torchtitan.Format.Write(d.target())
		if err != nil {
			for _, diag := range err.(ir.Diags) {
				refused[strings.Join(strings.Fields(diag.Msg)[:1], " ")]++
			}
			continue
		}
		n++
		if o != nil {
			const whole = 20 // one in so many is parsed with an empty command line, which is slow
			checkTitanAccepts(t, o, d, file, n%whole != 0)
		}
		im, err := torchtitan.Format.Import([]interop.File{{Name: "job.toml", Data: file}, configFile(d)},
			interop.Options{})
		if err != nil {
			t.Fatalf("%s: %v\n%s", d, err, file)
		}
		got := importedKeys(im)
		want := planKeys(&d.plan, slices.Collect(maps.Keys(got)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: imported otherwise: %s\n%s", d, diff, file)
		}
	}
	t.Logf("refused: %v", refused)
}

// checkTitanAccepts asks torchtitan whether it accepts a file, and compares the plan that it reads.
func checkTitanAccepts(t *testing.T, o *oracle, d *draw, file []byte, quick bool) {
	t.Helper()
	a, refusal := askTitan(t, o, d, file, quick)
	if refusal != "" {
		t.Fatalf("%s: torchtitan refuses: %s\n%s", d, refusal, file)
	}
	got := titanPlan(&a, d.plan.LargestChunk())
	if d.question.Job.Config.Experts > 0 {
		got["ep"] = fmt.Sprint(a.Dims.EP)
		if a.Dims.EP > 1 {
			got["etp"] = fmt.Sprint(a.Dims.ETP)
		}
	}
	if diff := cmp.Diff(planKeys(&d.plan, slices.Collect(maps.Keys(got))), got); diff != "" {
		t.Fatalf("%s: torchtitan reads another plan: %s\n%s", d, diff, file)
	}
}

// titanTables are the embedded tables, and the question that returns their rows.
func TestTorchtitanTablesAreCurrent(t *testing.T) {
	o := startOracle(t, "torchtitan")
	var keys struct{ Keys [][3]string }
	if refusal := o.ask(t, map[string]any{"keys": true}, &keys); refusal != "" {
		t.Fatal(refusal)
	}
	var rows []keytable.Row
	for _, k := range keys.Keys {
		rows = append(rows, keytable.Row{Key: k[0], Type: k[1], Default: k[2]})
	}
	table := torchtitan.Keys.Update(torchtitan.Keys.Source, rows)
	holdTable(t, "torchtitan/keys.tsv", table.Text())
	var flavors struct{ Flavors [][3]json.RawMessage }
	if refusal := o.ask(t, map[string]any{"flavors": true}, &flavors); refusal != "" {
		t.Fatal(refusal)
	}
	text := "# torchtitan 0.2.2, 2026-11-26: torchtitan/models/*/__init__.py\n"
	for _, f := range flavors.Flavors {
		text += strings.Trim(string(f[0]), `"`) + "\t" + strings.Trim(string(f[1]), `"`) + "\t" + string(f[2]) + "\n"
	}
	holdTable(t, "torchtitan/flavors.tsv", text)
}

// holdTable compares an embedded table with the text that a trainer's own code makes.
func holdTable(t *testing.T, name, want string) {
	t.Helper()
	file := filepath.Join("..", "..", "interop", filepath.FromSlash(name))
	if harness.Updating() {
		if err := os.WriteFile(file, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the trainer has (go test ./golden/interop -run %s -update): %s", name, t.Name(), diff)
	}
}

// A file with the values of a plan, written into a file that says another one, says the plan too.
func TestTorchtitanEditsSayThePlan(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 5))
	limits := jobLimits{engine: "fsdp", families: titanFamilies}
	for range 40 {
		var files [][]byte
		var draws []*draw
		for len(files) < 2 {
			d := drawLegal(t, r, limits)
			d.plan.SP = d.plan.TP > 1
			file, err := torchtitan.Format.Write(d.target())
			if err == nil {
				files, draws = append(files, file), append(draws, d)
			}
		}
		doc, diags := tree.Parse(tree.TOML, "job.toml", files[0])
		if len(diags) > 0 {
			t.Fatal(diags)
		}
		for _, v := range torchtitan.Format.Values(draws[1].target()) {
			if err := doc.Set(v); err != nil {
				t.Fatalf("%+v: %v", v, err)
			}
		}
		im, err := torchtitan.Format.Import([]interop.File{{Name: "job.toml", Data: doc.Bytes()}, configFile(draws[1])},
			interop.Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, doc.Bytes())
		}
		got := importedKeys(im)
		want := planKeys(&draws[1].plan, slices.Collect(maps.Keys(got)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: %s\n%s", draws[1], diff, doc.Bytes())
		}
	}
}

// titanDifferences are keys of plans that planc refuses and whose files torchtitan accepts, because a file says such a
// plan otherwise: contradictions between keys of a plan cannot be written.
var titanDifferences = map[string]string{
	"dp":               "the file has the job's global batch, from which torchtitan computes the micro-batches",
	"micro_batches":    "the file has the job's global batch, from which torchtitan computes the micro-batches",
	"vpp":              "the file lists the layers of each chunk, and with pp 1 it has no chunks",
	"pp":               "the file lists the layers of each chunk, also where they contradict vpp",
	"stage_layers":     "the file lists the layers of each chunk, also where they contradict vpp",
	"schedule":         "with pp 1 the file has no schedule",
	"sp":               "with tp 1 sequence parallelism does nothing",
	"cp_kind":          "with cp 1 the file has no rotate method",
	"ep":               "a model without experts has no ep in the file",
	"etp":              "a model without experts has no etp in the file",
	"recompute_layers": "with recompute none the file has no number of blocks",
	"zero":             "without replicas the file says dp_shard 1, which is zero 0",
	"zero_group":       "torchtitan shards experts over other ranks than the rest, which planc does not price",
}

// Plans that break a rule are refused by planc's export or break a rule that torchtitan does not check; every such
// reason is listed.
func TestTorchtitanRefusesIllegalPlans(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "torchtitan")
	r := rand.New(rand.NewPCG(24, 4))
	known := newDifferences()
	const plans = 2000
	both := 0
	for range plans {
		d, reasons := drawIllegal(t, r, jobLimits{engine: "fsdp", families: titanFamilies})
		file := titanFile(t, d)
		_, refusal := askTitan(t, o, d, file, true)
		if refusal != "" || torchtitanRefuses(d) {
			both++
			continue
		}
		known.add(reasons[0].Key, fmt.Sprintf("%s\n%v\n%s", d, reasons, file))
	}
	t.Logf("%d of %d are refused by torchtitan or cannot be written", both, plans)
	known.compare(t, titanDifferences)
}

// torchtitanRefuses reports whether a plan cannot be written.
func torchtitanRefuses(d *draw) bool {
	_, err := torchtitan.Format.Write(d.target())
	return err != nil
}

// titanFile returns the file of a plan that may be illegal.
func titanFile(t *testing.T, d *draw) []byte {
	t.Helper()
	file, err := tree.Write(tree.TOML, torchtitan.Format.Values(d.target()))
	if err != nil {
		t.Fatal(err)
	}
	return file
}
