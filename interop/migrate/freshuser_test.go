package migrate

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/formats"
)

// If the only edits that fit change what the script decides, they are offered, and are no refusals.
func TestEditsThatTheScriptMakes(t *testing.T) {
	file := interop.File{Name: "ds.yaml", Data: []byte("distributed_type: DEEPSPEED\nmixed_precision: bf16\n" +
		"num_machines: 1\nnum_processes: 8\ndeepspeed_config:\n  gradient_accumulation_steps: 4\n  zero_stage: 3\n")}
	r := reportOf(t, []interop.File{file}, noFiles, onH100([]string{"model=llama3-8b", "train.seq_len=8192",
		"train.global_batch=256"}))
	i := slices.IndexFunc(r.Edits, func(e Edit) bool { return e.Fits && !e.IsRefused })
	if i < 0 {
		t.Fatal("no edit fits and is possible")
	}
	e := r.Edits[i]
	const note = "has no key that says recompute"
	if strings.Join(e.Keys, " ") != "micro_batch recompute" || !strings.Contains(e.DiffNote, note) {
		t.Errorf("%s: %s", e.Message, e.DiffNote)
	}
}

// torchtitan has sequence parallelism with tp, so that one key says both, and the best plan may have them.
func TestTorchtitanHasSPWithTP(t *testing.T) {
	if !isLong(t) {
		t.Skip("takes many seconds: PLANC_LAWS=long runs it")
	}
	var best []string
	for _, degree := range []string{"1", "8"} {
		files := titanOf("tensor_parallel_degree = " + degree)
		files[0].Data = bytes.Replace(files[0].Data, []byte("local_batch_size = 2"), []byte("local_batch_size = 1"), 1)
		r := reportOf(t, files, noFiles, onH100([]string{"cluster.nodes=8", "model=llama3-70b",
			"train.seq_len=8192"}))
		if r.Best == nil || !r.Best.Plan.SP || r.Diff == "" {
			t.Fatalf("%s: %s", r.Message, r.DiffNote)
		}
		best = append(best, r.Best.Plan.Plan.String())
		for _, e := range r.Edits {
			if e.Plan.SP && strings.Contains(e.DiffNote, "the model's code decides it") {
				t.Errorf("%s: %s", e.Message, e.DiffNote)
			}
		}
	}
	if best[0] != best[1] {
		t.Errorf("best with tp 1: %s, with tp 8: %s", best[0], best[1])
	}
}

// An export like a script that names another file changes both, as a patch.
func TestExportLikeAScriptThatNamesAFile(t *testing.T) {
	toml := titanOf("tensor_parallel_degree = 2")[0]
	script := interop.File{Name: "run.sh", Data: []byte("torchrun --nproc_per_node 8 -m torchtitan.train " +
		"--job.config_file tt.toml --training.local_batch_size 4\n")}
	read := func(name string) ([]byte, error) {
		if name == toml.Name {
			return toml.Data, nil
		}
		return nil, fs.ErrNotExist
	}
	q := questionOf(t, []string{"model=llama3-8b", "cluster.node=dgx-h100", "cluster.nodes=1",
		"train.global_batch=64", "train.seq_len=4096"}, "fsdp", "plan.tp=4", "plan.sp=true",
		"plan.micro_batch=2", "plan.zero=3")
	f, plan := formats.Find("torchtitan"), decide(t, q)
	alone, err := Export(f, q, plan, []interop.File{script}, interop.Options{Read: read})
	if err != nil {
		t.Fatal(err)
	}
	both, err := Export(f, q, plan, []interop.File{script, toml}, interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--- tt.toml", "+tensor_parallel_degree = 4", "--- run.sh",
		"--training.local_batch_size 2"} {
		if !strings.Contains(string(alone.Text), want) {
			t.Errorf("%s\nlacks %q", alone.Text, want)
		}
	}
	if diff := cmp.Diff(string(both.Text), string(alone.Text)); diff != "" {
		t.Error(diff)
	}
}
