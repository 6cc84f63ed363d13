package migrate

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/planner"
)

// Scripts that start a trainer with a configuration name it, and both together are read.
func TestScriptsThatStartAConfiguration(t *testing.T) {
	const (
		deepspeed = "deepspeed --num_gpus 8 train.py --deepspeed ds.json\n"
		ds        = `{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}`
	)
	for _, c := range []struct{ script, alone, config, text, note string }{
		{deepspeed, "run.sh:1:45: this script starts a trainer with --deepspeed ds.json, which has the " +
			"plan: give that file, alone or after run.sh [UnknownFormat]", "ds.json", ds,
			"run.sh:1:45: the plan is that of ds.json; planc reads only the number of devices from run.sh"},
		{"deepspeed --num_gpus 8 train.py --deepspeed=ds.json\n", "run.sh:1:33: this script starts a trainer with " +
			"--deepspeed ds.json, which has the plan: give that file, alone or after run.sh [UnknownFormat]", "ds.json",
			ds, "run.sh:1:33: the plan is that of ds.json; planc reads only the number of devices from run.sh"},
	} {
		script := interop.File{Name: "run.sh", Data: []byte(c.script)}
		_, err := Read([]interop.File{script}, "", interop.Options{})
		if err == nil || err.Error() != c.alone {
			t.Errorf("got  %v\nwant %s", err, c.alone)
		}
		s, err := Read([]interop.File{script, {Name: c.config, Data: []byte(c.text)}}, "", interop.Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Devices != 8 || len(s.Notes) != 1 || s.Notes[0].String() != c.note || s.Main() != c.config {
			t.Errorf("%s: %d devices, notes %v", s.Main(), s.Devices, s.Notes)
		}
	}
}

// A script that starts torchtitan is read with the file that it names, and its options are part of the plan. The
// patches of both files, applied, give the edited plans.
func TestOptionsOfAScriptAreEditedInIt(t *testing.T) {
	const (
		script = "TP=4\ntorchrun --nproc_per_node=8 -m torchtitan.train --job.config_file ./job.toml \\\n" +
			"  --parallelism.tensor_parallel_degree $TP --training.local_batch_size=2 \"$@\"\n"
		toml = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n" +
			"[parallelism]\ntensor_parallel_degree = 1\n[activation_checkpoint]\nmode = \"full\"\n"
	)
	onDisk := map[string]string{"run.sh": script, "job.toml": toml}
	read := func(name string) ([]byte, error) {
		text, ok := onDisk[name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(text), nil
	}
	check := func(names ...string) *Report {
		var files []interop.File
		for _, name := range names {
			files = append(files, interop.File{Name: name, Data: []byte(onDisk[name])})
		}
		return reportOf(t, files, read, overrides("cluster.node=dgx-h100"))
	}
	alone, both := check("run.sh"), check("run.sh", "job.toml")
	if alone.Diff == "" || alone.Diff != both.Diff || alone.From() != both.From() {
		t.Errorf("the script alone gives %v\n%s\nwith the file %v\n%s", alone.From(), alone.Diff, both.From(),
			both.Diff)
	}
	if p := alone.From(); p.TP != 4 || p.MicroBatch != 2 || p.DP != 2 {
		t.Errorf("the plan is %v", &p)
	}
	edits := append([]Edit{{Edit: planner.Edit{Plan: alone.Best.Plan}, Diff: alone.Diff}}, alone.Edits...)
	inScript := 0
	for _, e := range edits {
		if !strings.Contains(e.Diff, "+++ run.sh") || inScript == 3 { // each reads both files and searches again
			continue
		}
		inScript++
		onDisk["run.sh"], onDisk["job.toml"] = script, toml
		for _, name := range []string{"run.sh", "job.toml"} {
			onDisk[name] = applied(t, onDisk[name], name, e.Diff)
		}
		if got := check("run.sh").From(); got != e.Plan.Plan {
			t.Errorf("%s gives\n%v\nand not\n%v", e.Diff, &got, &e.Plan.Plan)
		}
	}
	if inScript < 2 {
		t.Errorf("%d of %d edits change the script", inScript, len(edits))
	}
}

// A config.json alone has no plan: the error says what to give with it, whatever the format.
func TestModelAloneIsExplained(t *testing.T) {
	file := interop.File{Name: "m/config.json", Data: []byte(`{"model_type": "llama", "hidden_size": 64}`)}
	want := "m/config.json:1:1: this is a model, which has no plan: give the trainer's file with it (planc check " +
		"run.sh m/config.json), or search the best plan (planc plan --model m/config.json --cluster NAME " +
		"--global-batch N --seq-len N) [UnknownFormat]"
	for _, format := range []string{"", "hf", "megatron"} {
		_, err := Read([]interop.File{file}, format, interop.Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%q: got:\n%v\nwant:\n%s", format, err, want)
		}
	}
}

// The commands that the error shows can be pasted.
func TestModelAloneIsQuoted(t *testing.T) {
	for name, shown := range map[string]string{"my m.json": "'my m.json'", "-": "config.json",
		"it's.json": `'it'\''s.json'`} {
		_, err := Read([]interop.File{{Name: name, Data: []byte(`{"model_type": "llama", "hidden_size": 64}`)}}, "",
			interop.Options{})
		if err == nil || !strings.Contains(err.Error(), "(planc check run.sh "+shown+")") ||
			!strings.Contains(err.Error(), "(planc plan --model "+shown+" --cluster") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// applied returns a text with the hunks that a patch has for it.
func applied(t *testing.T, text, name, patch string) string {
	t.Helper()
	_, hunks, ok := strings.Cut(patch, "+++ "+name+"\n")
	if !ok {
		return text
	}
	hunks, _, _ = strings.Cut(hunks, "\n--- ")
	var before, after strings.Builder
	flush := func() {
		if before.Len() > 0 && strings.Count(text, before.String()) != 1 {
			t.Fatalf("the hunk of %s does not apply:\n%s", name, patch)
		}
		text = strings.Replace(text, before.String(), after.String(), 1)
		before.Reset()
		after.Reset()
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(hunks, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "@@"):
			flush()
		case strings.HasPrefix(line, "-"):
			before.WriteString(line[1:] + "\n")
		case strings.HasPrefix(line, "+"):
			after.WriteString(line[1:] + "\n")
		default:
			before.WriteString(line[1:] + "\n")
			after.WriteString(line[1:] + "\n")
		}
	}
	flush()
	return text
}
