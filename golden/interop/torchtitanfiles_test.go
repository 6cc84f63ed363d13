package interop_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/torchtitan"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

// titanChange is a key that a random file gets, with values of which one is drawn. "" removes the key.
type titanChange struct {
	key    string
	values []string
}

// titanChanges are ways in which users write files that planc's export never writes.
var titanChanges = []titanChange{
	{"parallelism.data_parallel_shard_degree", []string{"", "-1", "-1", "1", "2", "4"}},
	{"parallelism.data_parallel_replicate_degree", []string{"", "1", "2"}},
	{"parallelism.fsdp_reshard_after_forward", []string{"", `"default"`, `"always"`, `"never"`}},
	{"parallelism.tensor_parallel_degree", []string{"", "1", "2", "4", "8"}},
	{"parallelism.context_parallel_degree", []string{"", "1", "2", "4"}},
	{"parallelism.context_parallel_rotate_method", []string{"", `"allgather"`, `"alltoall"`}},
	{"parallelism.expert_parallel_degree", []string{"", "1", "2", "4"}},
	{"parallelism.expert_tensor_parallel_degree", []string{"", "1", "2"}},
	{"parallelism.pipeline_parallel_schedule", []string{"", `"1F1B"`, `"interleaved1f1b"`, `"GPipe"`, `"ZBVZeroBubble"`}},
	{"parallelism.pipeline_parallel_microbatch_size", []string{"", "1", "2"}},
	{"parallelism.module_fqns_per_model_part", []string{""}},
	{"parallelism.pipeline_parallel_layers_per_stage", []string{"", "1", "2", "3", "4"}},
	{"parallelism.pipeline_parallel_first_stage_less_layers", []string{"", "0", "1", "2"}},
	{"parallelism.pipeline_parallel_last_stage_less_layers", []string{"", "0", "1"}},
	{"activation_checkpoint.mode", []string{"", `"none"`, `"full"`, `"selective"`}},
	{"activation_checkpoint.selective_ac_option", []string{"", `"op"`, `"1"`, `"2"`, `"3"`}},
	{"training.local_batch_size", []string{"", "1", "2", "4", "8"}},
	{"training.global_batch_size", []string{"", "-1", "-1", "64", "128"}},
	{"training.mixed_precision_param", []string{"", `"bfloat16"`, `"float32"`}},
	{"training.dtype", []string{""}},
	{"training.max_norm", []string{"0.5"}},
	{"optimizer.lr", []string{"3e-4"}},
	{"metrics.log_freq", []string{"5"}},
	{"model.converters", []string{"[]", `["float8"]`}},
}

// changeTitanFile changes some keys of a file as a user would.
func changeTitanFile(t *testing.T, r *rand.Rand, file []byte) []byte {
	t.Helper()
	doc, diags := tree.Parse(tree.TOML, "job.toml", file)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	for range 1 + r.IntN(6) {
		c := pick(r, titanChanges...)
		text := pick(r, c.values...)
		err := doc.Set(interop.Value{Key: c.key, Text: text, IsAbsent: text == ""})
		if err != nil {
			t.Fatalf("%s = %s: %v\n%s", c.key, text, err, doc.Bytes())
		}
	}
	return doc.Bytes()
}

// titanSettings returns what torchtitan trains a draw's model with: the plan, the batch and the precision.
func titanSettings(a *titanAnswer, d *draw) map[string]string {
	s := titanPlan(a, d.question.Job.Config.Layers)
	if d.question.Job.Config.Experts > 0 {
		s["ep"] = fmt.Sprint(a.Dims.EP)
		if a.Dims.EP > 1 {
			s["etp"] = fmt.Sprint(a.Dims.ETP)
		}
	}
	if s["recompute"] == "full" && s["recompute_layers"] == "0" {
		s["recompute"] = "none" // every n-th block of fewer than n
	}
	if a.FSDP { // without it, torchtitan ignores the type in some plans
		s["mixed_precision_param"] = a.Config.Training.Mixed
	}
	s["seq_len"] = fmt.Sprint(a.Config.Training.SeqLen)
	s["global_batch"] = fmt.Sprint(a.Config.Training.Local * a.Dims.Replicate * a.Dims.Shard * a.Accumulation)
	return s
}

// titanNotTaken are keys of whose values planc says that it does not price them. Their files are not exported with the
// same settings.
var titanNotTaken = parallelSection + " activation_checkpoint. training."

// notImported begins the reason of a file that torchtitan accepts and planc refuses.
const notImported = "planc refuses: "

// titanRefusals are files that torchtitan accepts and planc refuses, by planc's message up to its first number.
var titanRefusals = map[string]string{
	parallelSection + "module_fqns_per_model_part gives each stage ": "a schedule of one chunk gets only the first " +
		"chunk of each stage (torchtitan/distributed/pipeline_parallel.py), so that the others do not train",
}

// parallelSection begins the keys of torchtitan's degrees.
const parallelSection = "parallelism."

// titanRefusal returns the kind of a refusal: its message without the position, up to its first number.
func titanRefusal(message string) string {
	_, text, _ := strings.Cut(message, ": ")
	end := strings.IndexAny(text, "0123456789")
	if end < 0 {
		return text
	}
	return text[:end]
}

// Random files that torchtitan accepts are imported, and exported again. torchtitan reads the same settings from both.
func TestTorchtitanFilesSurvive(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "torchtitan")
	r := rand.New(rand.NewPCG(24, 10))
	skipped := map[string]int{}
	refused := newDifferences()
	for n := 0; n < drawsOr(0); {
		d := drawLegal(t, r, jobLimits{engine: "fsdp", families: titanFamilies})
		d.plan.SP = d.plan.TP > 1
		start, err := torchtitan.Format.Write(d.target())
		if err != nil {
			continue
		}
		const variants = 4 // of one plan, because drawing a plan takes longer
		for range variants {
			file := changeTitanFile(t, r, start)
			before, refusal := askTitan(t, o, d, file, true)
			if refusal != "" {
				skipped["torchtitan refuses"]++
				continue
			}
			reason := checkTitanSurvives(t, o, d, &before, file)
			switch message, isRefused := strings.CutPrefix(reason, notImported); {
			case isRefused:
				refused.add(titanRefusal(message), fmt.Sprintf("%s\n%s\n%s", message, d, file))
			case reason != "":
				skipped[reason]++
			default:
				n++
			}
		}
	}
	refused.compare(t, titanRefusals)
	t.Logf("not compared: %v", skipped)
}

// checkTitanSurvives imports and exports a file that torchtitan accepts, and compares what it reads. It returns why
// there is nothing to compare, "" if there is.
func checkTitanSurvives(t *testing.T, o *oracle, d *draw, before *titanAnswer, file []byte) string {
	t.Helper()
	im, err := torchtitan.Format.Import([]interop.File{{Name: "job.toml", Data: file}, configFile(d)},
		interop.Options{Devices: d.question.Hardware.Devices()})
	if err != nil {
		return notImported + err.Error()
	}
	for _, k := range im.Keys {
		if section, _, _ := strings.Cut(k.Name, "."); k.Use == interop.Unsupported &&
			strings.Contains(titanNotTaken, section+".") {
			return k.Name + " is not supported"
		}
	}
	target := d.target()
	target.Plan = planOf(t, d, im)
	job := *target.Job
	for path, into := range map[string]*int{"train.global_batch": &job.Train.GlobalBatch,
		"train.seq_len": &job.Train.SeqLen} {
		if f, ok := im.Field(path); ok {
			fmt.Sscan(f.Value, into)
		}
	}
	target.Job = &job
	setTitanPrecision(&target.Plan, im)
	exported, err := torchtitan.Format.Write(target)
	if err != nil {
		t.Fatalf("%s: %v\n%s", target.Plan.Text(), err, file)
	}
	after, refusal := askTitan(t, o, d, exported, true)
	if refusal != "" {
		t.Fatalf("%s: torchtitan refuses: %s\n%s", d, refusal, exported)
	}
	if diff := cmp.Diff(titanSettings(before, d), titanSettings(&after, d)); diff != "" {
		t.Fatalf("%s\nof %s\nbecomes %s\n%s\n%s", diff, d, target.Plan.Text(), file, exported)
	}
	return ""
}

// setTitanPrecision sets the precision that an import says.
func setTitanPrecision(p *ir.Plan, im *interop.Import) {
	f, _ := im.Field("train.precision.compute")
	p.Precision.Compute, p.Precision.FP8 = ir.BF16, f.Value == "fp8"
	if f.Value == "f32" {
		p.Precision.Compute = ir.F32
	}
}
