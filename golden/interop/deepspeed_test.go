package interop_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/deepspeed"
	"github.com/planc-dev/planc/ir"
)

// dsConfig is what DeepSpeed reads from a ds_config.json.
type dsConfig struct {
	Global     int    `json:"train_batch_size"`
	Micro      int    `json:"train_micro_batch_size_per_gpu"`
	Steps      int    `json:"gradient_accumulation_steps"`
	Stage      int    `json:"stage"`
	Optimizer  string `json:"offload_optimizer"`
	Param      string `json:"offload_param"`
	BF16       bool   `json:"bf16"`
	FP16       bool   `json:"fp16"`
	Grads      string `json:"grad_accum_dtype"`
	TP         int    `json:"tp"`
	CP         int    `json:"cp"`
	EP         int    `json:"ep"`
	ETP        int    `json:"etp"`
	Partitions bool   `json:"partition_activations"`
}

// dsWant returns what DeepSpeed must read for a plan.
func dsWant(p *ir.Plan) dsConfig {
	want := dsConfig{Global: p.DP * p.MicroBatch * p.MicroBatches, Micro: p.MicroBatch, Steps: p.MicroBatches,
		Stage: p.Zero, Optimizer: "none", Param: "none", BF16: p.Precision.Params == ir.BF16,
		FP16: p.Precision.Params == ir.F16, CP: p.CP, EP: p.EP, ETP: p.ETP, Partitions: p.RecomputeSplit}
	if p.TP > 1 {
		want.TP = p.TP
	}
	if p.Precision.Grads == ir.F32 && p.Precision.Params != ir.F32 && p.Zero > 0 {
		want.Grads = "fp32"
	}
	return want
}

// askDeepSpeed lets DeepSpeed read a file.
func askDeepSpeed(t *testing.T, o *oracle, text string, dp int) (got dsConfig, refusal string) {
	t.Helper()
	var answer struct{ Config dsConfig }
	refusal = o.ask(t, map[string]any{"text": text, "dp": dp}, &answer)
	return answer.Config, refusal
}

// drawExpressed draws legal plans until the format can say one.
func drawExpressed(t *testing.T, r *rand.Rand, f *interop.Format, engine string) (*draw, []byte) {
	t.Helper()
	for {
		d := drawLegal(t, r, jobLimits{engine: engine})
		if text, err := f.Write(d.target()); err == nil {
			return d, text
		}
	}
}

// planKeys are the keys of a plan that an import of a whole file pins, by format.
func samePins(t *testing.T, d *draw, f *interop.Format, text []byte, keys ...string) {
	t.Helper()
	im, err := f.Import([]interop.File{{Name: "f" + f.Ext, Data: text}},
		interop.Options{Devices: d.question.Hardware.Devices()})
	if err != nil {
		t.Fatalf("%s\n%v\n%s", d, err, text)
	}
	plan := d.plan.JSON()
	for _, key := range keys {
		got, ok := im.Field("plan." + key)
		want := fmt.Sprint(plan[key])
		if !ok || got.Value != want {
			t.Errorf("%s\nplan.%s is %q after export and import\n%s", d, key, got.Value, text)
		}
	}
}

// An exported plan is the same after import. This needs no parser of DeepSpeed.
func TestDeepSpeedRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 2))
	const plans = 60
	for range plans {
		d, text := drawExpressed(t, r, &deepspeed.Format, "deepspeed")
		samePins(t, d, &deepspeed.Format, text, "tp", "pp", "cp", "ep", "etp", "zero", "micro_batch", "micro_batches")
	}
}

// DeepSpeed reads the plan from what is exported.
func TestDeepSpeedReadsPlans(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "deepspeed")
	r := rand.New(rand.NewPCG(24, 3))
	plans := amount(2000)
	for range plans {
		d, text := drawExpressed(t, r, &deepspeed.Format, "deepspeed")
		got, refusal := askDeepSpeed(t, o, string(text), d.plan.DP)
		if refusal != "" {
			t.Fatalf("%s\n%s\n%s", d, refusal, text)
		}
		if diff := cmp.Diff(dsWant(&d.plan), got); diff != "" {
			t.Fatalf("%s\n%s\n%s", d, diff, text)
		}
		samePins(t, d, &deepspeed.Format, text, "tp", "cp", "zero", "micro_batch", "micro_batches")
	}
}

// Illegal plans are refused by planc; DeepSpeed's parser refuses those whose batch does not fit. The others need the
// model, which is not in the file.
func TestDeepSpeedIllegalPlans(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "deepspeed")
	r := rand.New(rand.NewPCG(24, 4))
	found := newDifferences()
	plans := amount(2000)
	for n := 0; n < plans; {
		d, reasons := drawIllegal(t, r, jobLimits{engine: "deepspeed"})
		text, err := deepspeed.Format.Write(d.target())
		if err != nil {
			continue
		}
		n++
		devices := d.question.Hardware.Devices()
		if devices%(d.plan.TP*d.plan.CP) != 0 {
			continue // no launch has these ranks
		}
		doc := strings.Replace(string(text), "{", fmt.Sprintf("{\n\"train_batch_size\": %d,",
			d.problem.GlobalBatch), 1)
		if _, refusal := askDeepSpeed(t, o, doc, devices/(d.plan.TP*d.plan.CP)); refusal == "" {
			found.add(groupOf(reasons[0].Key), d.String())
		}
	}
	found.compare(t, map[string]string{noKey: "the model's code has pipelines, experts and recomputation",
		otherRanks: "the sizes that the file says are legal: it has neither the model nor the devices"})
}

// Reasons why a trainer accepts the file of an illegal plan.
const (
	noKey      = "the file has no key for it"
	otherRanks = "the file does not say the number of ranks or the model"
)

// groupOf returns why a trainer may accept a plan that breaks a rule of a key.
func groupOf(key string) string {
	switch key {
	case "dp", "tp", "cp", "zero", "zero_group":
		return otherRanks
	}
	return noKey
}

// amount returns how many random plans or files a test draws: a tenth with -short.
func amount(n int) int {
	const short = 10
	if testing.Short() {
		return n / short
	}
	return n
}

// dsDraw draws a file, mostly one that DeepSpeed accepts.
func dsDraw(r *rand.Rand) map[string]any {
	c := map[string]any{}
	maybe := func(odds int, key string, value any) {
		if r.IntN(odds) == 0 {
			c[key] = value
		}
	}
	maybe(2, "train_batch_size", pick(r, 8, 16, 32, 64, 96))
	maybe(2, "train_micro_batch_size_per_gpu", pick(r, 1, 2, 4))
	maybe(2, "gradient_accumulation_steps", pick(r, 1, 2, 4))
	maybe(3, "bf16", map[string]any{"enabled": r.IntN(2) == 0})
	maybe(4, "fp16", map[string]any{"enabled": r.IntN(2) == 0, "loss_scale": pick(r, 0, 128, -1),
		"initial_scale_power": 12})
	zero := map[string]any{"stage": pick(r, 0, 1, 2, 3, 3, 4)}
	if r.IntN(4) == 0 {
		zero["offload_optimizer"] = map[string]any{"device": pick(r, "cpu", "none", "nvme", "gpu"),
			"ratio": pick(r, 1, 0.5)}
	}
	if r.IntN(6) == 0 {
		zero[pick(r, "stage3_max_live_parameters", "reduce_bucket_size", "overlap_com", "overlap_comm",
			"mics_shard_size", "zero_hpz_partition_size")] = pick[any](r, 1, 1000000, true)
	}
	maybe(1, "zero_optimization", zero)
	maybe(4, "tensor_parallel", map[string]any{pick(r, "autotp_size", "autotp_size", "tp_size"): pick(r, 1, 2)})
	maybe(6, "expert_parallel", map[string]any{"enabled": true, "autoep_size": pick(r, 1, 2), "nonsense": 1})
	maybe(6, "optimizer", map[string]any{"type": "AdamW", "params": map[string]any{"lr": 1e-4}})
	maybe(8, pick(r, "gradient_clippng", "nebula", "steps_per_print", "train_batch_siz"), 1)
	maybe(8, "data_types", map[string]any{"grad_accum_dtype": pick(r, "fp32", "bf16")})
	return c
}

// deepspeedReason shortens an error to what is wrong, without its values.
func deepspeedReason(text string) string {
	for _, words := range []string{"loss_scale", "removed", "stage", "ratio", "divide", "multiple",
		"data-parallel ranks", "both true", "needs one of them", "grad_accum_dtype", "integer", "refuses the file",
		"use one of", "Check batch", "simultaneously", "Extra inputs", "Either train_batch_size", "device",
		"greater than 0"} {
		if strings.Contains(text, words) {
			return words
		}
	}
	return text
}

// planc and DeepSpeed accept the same files. DeepSpeed reads the same from an accepted file and from what planc writes
// for its plan.
func TestDeepSpeedFiles(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "deepspeed")
	r := rand.New(rand.NewPCG(24, 5))
	found := newDifferences()
	files := amount(4000)
	accepted := 0
	for range files {
		c := dsDraw(r)
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		const devices = 8
		got, refusal := askDeepSpeed(t, o, string(data), devices)
		im, err := deepspeed.Format.Import([]interop.File{{Name: "ds.json", Data: data}},
			interop.Options{Devices: devices})
		switch {
		case err != nil && refusal == "":
			found.add("planc: "+deepspeedReason(err.Error()), string(data))
		case err == nil && refusal != "":
			found.add("DeepSpeed: "+deepspeedReason(refusal), string(data)+"\n"+refusal)
		case err == nil:
			accepted++
			checkRoundTrip(t, o, im, got, data)
		}
	}
	if accepted < files/4 {
		t.Errorf("only %d of %d files are accepted", accepted, files)
	}
	found.compare(t, map[string]string{
		"planc: stage":       "DeepSpeed's parser accepts offload without ZeRO, and the engine ignores it",
		"planc: integer":     "DeepSpeed reads true as 1",
		"DeepSpeed: removed": "older versions read the key, so planc accounts for it",
	})
}

// planc refuses these numbers in quotes if DeepSpeed's parser does. The parser converts text only in sections that
// pydantic checks; keys that DeepSpeed reads later are not part of this test.
func TestQuotedNumbersOfDeepSpeed(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "deepspeed")
	for _, c := range []struct {
		key, file string
		isAllowed bool
	}{
		{"global batch", `{"train_batch_size": "64"}`, false},
		{"micro-batch", `{"train_micro_batch_size_per_gpu": "4"}`, false},
		{"steps", `{"train_batch_size": 64, "gradient_accumulation_steps": "2"}`, false},
		{"clipping of the optimizer", `{"train_batch_size": 64, "optimizer": {"type": "Adam", "params":
			{"max_grad_norm": "1.0"}}}`, false},
		{"vocabulary", `{"train_batch_size": 64, "vocabulary_size": "32000"}`, false},
		{"stage", `{"train_batch_size": 64, "zero_optimization": {"stage": "2"}}`, true},
		{"buckets", `{"train_batch_size": 64, "zero_optimization": {"reduce_bucket_size": "500000000"}}`, true},
		{"buckets in e-notation", `{"train_batch_size": 64, "zero_optimization": {"reduce_bucket_size": "5e8"}}`, false},
		{"bf16", `{"train_batch_size": 64, "bf16": {"enabled": "true"}}`, true},
		{"scale", `{"train_batch_size": 64, "fp16": {"enabled": true, "initial_scale_power": "16"}}`, true},
		{"experts without expert parallelism", `{"train_batch_size": 64, "expert_parallel": {"enabled": false,
			"autoep_size": "8"}}`, true},
		{"a name of the optimizer", `{"train_batch_size": 64, "optimizer": {"type": "Adam", "params": {"name": "7"}}}`,
			true},
		{"tp", `{"train_batch_size": 64, "tensor_parallel": {"autotp_size": "1"}}`, true},
	} {
		_, refusal := askDeepSpeed(t, o, c.file, 8)
		_, err := deepspeed.Format.Import([]interop.File{{Name: "ds.json", Data: []byte(c.file)}},
			interop.Options{Devices: 8})
		if (refusal == "") != c.isAllowed || (err == nil) != c.isAllowed {
			t.Errorf("%s: DeepSpeed: %s, planc: %v", c.key, refusal, err)
		}
	}
}

// checkRoundTrip exports the plan of an import and compares what DeepSpeed reads from both files.
func checkRoundTrip(t *testing.T, o *oracle, im *interop.Import, want dsConfig, data []byte) {
	t.Helper()
	p := ir.SerialPlan(8, 1, ir.Precision{})
	for _, f := range im.Fields {
		key, ok := strings.CutPrefix(f.Path, "plan.")
		if !ok {
			continue
		}
		value := strings.NewReplacer("[", "", "]", "", ", ", ",").Replace(f.Value)
		if err := p.SetKey(key, value); err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
	}
	p.DP = 8 / (p.TP * p.CP)
	p.MicroBatch, p.MicroBatches = want.Micro, want.Steps
	p.Precision = precisionOf(im)
	got, refusal := askDeepSpeed(t, o, writeDeepSpeed(t, &p), 8)
	if refusal != "" {
		t.Fatalf("%s\n%s", refusal, data)
	}
	want.Optimizer, want.Param = got.Optimizer, got.Param // planc's plans have no offload
	want.TP, got.TP = max(want.TP, 1), max(got.TP, 1)
	if want.Grads == "bf16" && want.BF16 || want.Grads != "" && !want.BF16 && !want.FP16 {
		want.Grads = "" // the default
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s\n%s", diff, data)
	}
}
