package torchtitan

import (
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
)

const (
	start = "torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file ./job.toml"
	toml  = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\n[parallelism]\n" +
		"tensor_parallel_degree = 2\n"
)

// readBoth reads a script with the TOML file.
func readBoth(script string, o interop.Options) (*interop.Import, error) {
	return Format.Import([]interop.File{{Name: "run.sh", Data: []byte(script)}, {Name: "job.toml",
		Data: []byte(toml)}}, o)
}

// keyOf returns the use of a key with what it sets; "" if the import does not have it.
func keyOf(im *interop.Import, name string) string {
	for _, k := range im.Keys {
		if k.Name == name {
			return strings.TrimSpace(k.Value + " " + string(k.Use) + " " + strings.Join(k.As, ", ") + k.Note)
		}
	}
	return ""
}

// Options of the command replace keys of the TOML file, in every form that torchtitan reads.
func TestOptionsReplaceKeys(t *testing.T) {
	for _, c := range []struct{ script, plan string }{
		{start, "2 4 8 1 1"},
		{start + " --parallelism.tensor_parallel_degree 4", "4 2 8 1 1"},
		{start + " --parallelism.tensor_parallel_degree=4", "4 2 8 1 1"},
		{start + " --parallelism.tensor-parallel-degree 4", "4 2 8 1 1"},
		{start + " --parallelism.tensor_parallel_degree 8 --parallelism.tensor_parallel_degree 4", "4 2 8 1 1"},
		{start + " \\\n  --training.local_batch_size 2 \\\n  --parallelism.tensor_parallel_degree=4", "4 2 8 2 1"},
		{start + " --training.local_batch_size +0_4 --training.global_batch_size -1", "2 4 8 4 1"},
		{start + " --parallelism.data_parallel_shard_degree -1", "2 4 8 1 1"},
		{start + " --parallelism.data_parallel_shard_degree 4", "2 4 8 1 1"},
		{start + " --parallelism.pipeline_parallel_degree 2 --training.local_batch_size 4", "2 2 8 1 4"},
		{"torchrun --nproc_per_node=8 -m torchtitan.train --training.local_batch_size=2 --job.config-file=job.toml",
			"2 4 8 2 1"},
		{"TP=4\n" + start + " --parallelism.tensor_parallel_degree $TP", "4 2 8 1 1"},
		{"ARGS=(--parallelism.tensor_parallel_degree 4)\n" + start + ` "${ARGS[@]}" "$@"`, "4 2 8 1 1"},
		{"NGPU=${NGPU:-8}\nCONFIG_FILE=${CONFIG_FILE:-./job.toml}\ntorchrun --nproc_per_node=${NGPU} -m " +
			"torchtitan.train --job.config_file ${CONFIG_FILE} --training.local_batch_size 2 \"$@\"", "2 4 8 2 1"},
		{"NGPU=8 CONFIG_FILE=\"./job.toml\" ./run_train.sh --parallelism.tensor_parallel_degree 4", "4 2 8 1 1"},
		{"export NGPU=4\nexport CONFIG_FILE=job.toml\nbash run_train.sh --training.local_batch_size 3", "2 2 4 3 1"},
		{"srun torchrun --nnodes 2 --nproc_per_node 8 -m torchtitan.train --job.config_file job.toml", "2 8 16 1 1"},
		{"torchrun --nproc_per_node=8 train.py --job.config_file job.toml --training.local_batch_size 2", "2 4 8 2 1"},
	} {
		im, err := readBoth(c.script, interop.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.script, err)
			continue
		}
		got := planOf(im, "tp dp") + " " + strconv.Itoa(im.Devices) + " " + planOf(im, "micro_batch micro_batches")
		if got != c.plan || im.Files[0] != "job.toml" || im.Files[1] != "run.sh" {
			t.Errorf("%s: %s, want %s", c.script, got, c.plan)
		}
	}
}

// Every option has a row in the table of keys, and so has the key that it replaces.
func TestOptionsAreAccountedFor(t *testing.T) {
	im, err := readBoth(start+" --parallelism.tensor-parallel-degree=4 --compile.enable --training.no_gc_debug "+
		"--job.description \"$NAME\" --training.seq_len 1024 --training.seq_len 4096 --debug.seed None "+
		"--training.enable_cpu_offload --model.converters float8 -- $EXTRA \"$@\"", interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, k := range im.Keys {
		if k.Pos.File == "run.sh" {
			got[k.Name] = keyOf(im, k.Name)
		}
	}
	want := map[string]string{
		"--nproc_per_node":                     "8 taken devices: 8",
		"--job.config_file":                    "./job.toml taken job.toml",
		"--parallelism.tensor-parallel-degree": "4 taken plan.tp: 4",
		"--compile.enable":                     "true no effect on the plan",
		"--training.no_gc_debug":               "false no effect on the plan",
		"--job.description":                    "$NAME no effect on the plan",
		"--training.seq_len":                   "1024 ignored by that tool --training.seq_len on line 1 replaces it",
		"--debug.seed":                         "None no effect on the plan",
		"--training.enable_cpu_offload": "true not supported by planc offload: keeps the parameters and the " +
			"optimizer state in the host's memory",
		"--model.converters": "float8 taken train.precision.compute: fp8",
		"--":                 "no effect on the plan",
		"$EXTRA":             "not supported by planc $EXTRA has no value here: type --define EXTRA=VALUE",
		"$@": "no effect on the plan no arguments of the script are given: --define '@=...' gives " +
			"them",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := keyOf(im, tpKey); got != "2 ignored by that tool --parallelism.tensor-parallel-degree replaces it "+
		"(run.sh, line 1)" {
		t.Errorf("the replaced key: %s", got)
	}
	f, _ := im.Field("train.seq_len")
	if f.Value != "4096" || f.From != "--training.seq_len" || f.Pos.File != "run.sh" {
		t.Errorf("seq_len is %s from %s at %s", f.Value, f.From, f.Pos)
	}
}

// Common errors in options are reported at the option, with what is allowed and what to type.
func TestWrongOptions(t *testing.T) {
	const at = "run.sh:2:3: "
	const noKey = at + "torchtitan 0.2 has no option "
	const gcDebug = "torchtitan reads --training.gc_debug without a value: write --training.gc_debug for true, and " +
		"--training.no_gc_debug for false [WrongType]"
	for options, want := range map[string]string{
		"--training.seq_lenn 8": noKey + "--training.seq_lenn; did you mean --training.seq_len? [UnknownKey]",
		"--train.seq_len=8":     noKey + "--train.seq_len; did you mean --training.seq_len? [UnknownKey]",
		"--seq_len 8":           noKey + "--seq_len; did you mean --training.seq_len? [UnknownKey]",
		"--local-batch-size 8":  noKey + "--local-batch-size; did you mean --training.local_batch_size? [UnknownKey]",
		"--xyzzy 8":             noKey + "--xyzzy [UnknownKey]",
		"--mx.filter_fqns output": noKey + "--mx.filter_fqns; did you mean --quantize.linear.mx.filter_fqns? " +
			"[UnknownKey]",
		"--float8.moe_fqns_prototype experts": at + "float8.moe_fqns_prototype is a key of torchtitan 0.1, and " +
			"planc reads files of 0.2: write quantize.grouped_mm.float8.fqns [WrongDialect]",
		"--training.no_seq_len": noKey + "--training.no_seq_len; did you mean --training.seq_len? [UnknownKey]",
		"'--training.seq_len 8'": "run.sh:2:4: --training.seq_len ...: quotes make this one argument, which is " +
			"no option: " +
			"remove the quotes around it [UnknownKey]",
		"-training.seq_len 8": at + "torchtitan refuses -training.seq_len, which is no option: options start with " +
			"two dashes [UnknownKey]\nrun.sh:2:21: torchtitan refuses \"8\", which belongs to no option [UnknownKey]",
		"--training.gc_debug=True": at + gcDebug,
		"--training.gc_debug true": "run.sh:2:23: " + strings.Replace(gcDebug, "WrongType", "UnknownKey", 1),
		"--training.seq_len":       at + "--training.seq_len has no value: add it after the option [WrongType]",
		"--training.seq_len --compile.enable": at + "--training.seq_len has no value: add it after the option " +
			"[WrongType]",
		"--training.seq_len 8k":   "run.sh:2:22: --training.seq_len is \"8k\"; it must be an integer [WrongType]",
		"--training.seq_len=8.0":  at + "--training.seq_len is \"8.0\"; it must be an integer [WrongType]",
		"--training.seq_len None": "run.sh:2:22: --training.seq_len is \"None\"; it must be an integer [WrongType]",
		"--optimizer.lr big":      "run.sh:2:18: --optimizer.lr is \"big\"; it must be a number [WrongType]",
		"--training.seq_len 8 9":  "run.sh:2:24: torchtitan refuses \"9\", which belongs to no option [UnknownKey]",
		"--activation_checkpoint.mode Full": "run.sh:2:32: --activation_checkpoint.mode is \"Full\"; use one of " +
			"selective, full, memory_budget, none; did you mean full? [UnknownValue]",
		"--parallelism.tensor_parallel_degree 3": "run.sh:2:40: 1 replicas × cp 1 × tp 3 × pp 1 are 3 devices, which " +
			"do not divide 8: lower one of these degrees [Conflict]",
		"--parallelism.tensor_parallel_degree $TP": "run.sh:2:40: --parallelism.tensor_parallel_degree: $TP has no " +
			"value here: type --define TP=VALUE [Undefined]",
		"--training.batch_size 4": at + "training.batch_size is a key of torchtitan 0.1, and planc reads files of " +
			"0.2: write training.local_batch_size [WrongDialect]",
		"--training.seq_lenn 8 --training.gc_debug=1": noKey + "--training.seq_lenn; did you mean " +
			"--training.seq_len? [UnknownKey]\nrun.sh:2:25: " + gcDebug,
	} {
		_, err := readBoth(start+" \\\n  "+options, interop.Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", options, err, want)
		}
	}
	im, err := readBoth(start+" --job.custom_config_module mine --mine.width 8 --mine.deep", interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := keyOf(im, "--mine.width"); got != "8 not supported by planc an option of job.custom_config_module, "+
		"which planc does not know" {
		t.Errorf("an option of the user's own module: %s", got)
	}
}

// The script alone is enough if the TOML file that it names can be read.
func TestTheScriptNamesTheFile(t *testing.T) {
	o := interop.Options{Read: func(name string) ([]byte, error) {
		if name == "jobs/job.toml" {
			return []byte(toml), nil
		}
		return nil, fs.ErrNotExist
	}}
	readAlone := func(script string) (*interop.Import, error) {
		return Format.Import([]interop.File{{Name: "jobs/run.sh", Data: []byte(script)}}, o)
	}
	im, err := readAlone(start)
	if err != nil || im.Files[0] != "jobs/job.toml" || im.Devices != 8 {
		t.Errorf("%v", err)
	}
	const top, noConfig = "jobs/run.sh:1:1: ", " [NoConfig]"
	for script, want := range map[string]string{
		strings.Replace(start, "job.toml", "other.toml", 1): "jobs/run.sh:1:67: this script starts torchtitan with " +
			"./other.toml, which has the plan: give that file, too, after jobs/run.sh" + noConfig,
		strings.Replace(start, "./job.toml", "/a/job.toml", 1): "jobs/run.sh:1:67: this script starts torchtitan " +
			"with /a/job.toml, which has the plan: give that file, too, after jobs/run.sh" + noConfig,
		strings.Replace(start, "./job.toml", "$1", 1): "jobs/run.sh:1:67: the script does not say which TOML file it " +
			"starts: $1 has no value here: type --define 1=VALUE, or give the file too [Undefined]",
		"torchrun -m torchtitan.train --training.steps 1": top + "torchtitan starts without --job.config_file " +
			"here: add " +
			"the option with the name of a TOML file" + noConfig,
		"torchrun -m torchtitan.train --module llama3 --config llama3_8b": "jobs/run.sh:1:30: --module is an " +
			"option of " +
			"torchtitan 0.3, which has its plan in Python, and planc reads the TOML files of 0.2: give a TOML file " +
			"with the same keys [WrongDialect]",
		"echo torchtitan.train": top + "no command of this script starts torchtitan with --job.config_file FILE, or " +
			"run_train.sh with CONFIG_FILE=FILE" + noConfig,
		"exit 0\n" + start: top + "no command starts torchtitan with --job.config_file: the script ends " +
			"here" + noConfig,
	} {
		_, err := readAlone(script)
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", script, err, want)
		}
	}
	_, err = Format.Import([]interop.File{{Name: "run.sh", Data: []byte(start)},
		{Name: "b.toml", Data: []byte(toml)}}, o)
	const other = "run.sh:1:67: the script starts torchtitan with ./job.toml, and b.toml is given: give the " +
		"file that " +
		"the script names [NoConfig]"
	if err == nil || err.Error() != other {
		t.Errorf("another file: %v", err)
	}
}

// A key that an option replaces is changed at the option, and other keys in the TOML file.
func TestOptionsAreEdited(t *testing.T) {
	v := func(key, text string) interop.Value {
		return interop.Value{Key: key, Text: text, IsAbsent: text == ""}
	}
	for _, c := range []struct {
		script string
		value  interop.Value
		want   string
	}{
		{start + " --" + tpKey + " 4 # ours", v(tpKey, "8"), start + " --" + tpKey + " 8 # ours"},
		{start + " --" + tpKey + "=4", v(tpKey, "8"), start + " --" + tpKey + "=8"},
		{start + " \\\n --" + tpKey + " 4 \\\n --compile.enable\n", v(tpKey, ""), start + " \\\n --compile.enable\n"},
		{"TP=4\n" + start + " --" + tpKey + " $TP", v(tpKey, "8"), "TP=8\n" + start + " --" + tpKey + " $TP"},
		{"TP=4\n" + start + " --" + tpKey + " $TP --" + localKey + " $TP", v(tpKey, "8"), "TP=4\n" + start + " --" +
			tpKey + " 8 --" + localKey + " $TP"},
		{start + " --" + tpKey + " 2 --" + tpKey + " 4", v(tpKey, "8"), start + " --" + tpKey + " 2 --" + tpKey + " 8"},
		{start + " --" + tpKey + " 2 --" + tpKey + " 4", v(tpKey, ""), start},
		{start + " --" + acOptionKey + " op", v(acOptionKey, `"2"`), start + " --" + acOptionKey + " 2"},
		{start + " --" + convertersKey + " mx", v(convertersKey, `["float8"]`), start + " --" + convertersKey +
			" float8"},
		{start + " --" + modulesKey + " a,b c", v(modulesKey, `[["a"], ["b", "c"]]`), start + " --" + modulesKey +
			" a b,c"},
		{start + " --" + tpKey + " 4", v(cpKey, "2"), start + " --" + tpKey + " 4"},
	} {
		im, err := readBoth(c.script, interop.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.script, err)
			continue
		}
		s := im.Doc.(interop.Parts)[1].Doc.(*scriptDocument)
		for _, w := range s.script.spell([]interop.Value{c.value}) {
			if err := im.Doc.Set(w); err != nil {
				t.Error(err)
			}
		}
		if got := string(s.Bytes()); got != c.want {
			t.Errorf("%s, %v:\n got %s\nwant %s", c.script, c.value, got, c.want)
		}
		isOption := strings.Contains(c.script, "--"+c.value.Key)
		inTOML := strings.Contains(string(im.Doc.Bytes()), c.value.Key[strings.LastIndexByte(c.value.Key, '.')+1:])
		if isOption && string(im.Doc.Bytes()) != toml && !c.value.IsAbsent || !isOption && !inTOML {
			t.Errorf("%v: the TOML file is %s", c.value, im.Doc.Bytes())
		}
	}
}

// An option that cannot be changed is named with its place and what to type.
func TestOptionsThatCannotBeEdited(t *testing.T) {
	for script, c := range map[string]struct {
		value interop.Value
		want  string
	}{
		start + " --" + modulesKey + " a b": {interop.Value{Key: modulesKey, Text: `[["a"], ["b"], ["c"]]`},
			"run.sh:1:78: --" + modulesKey + " a b replaces the key of the TOML file and cannot be changed in place: " +
				"change it to a b c by hand [CannotEdit]"},
	} {
		im, err := readBoth(script, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := im.Doc.(interop.Parts)[1].Doc.(*scriptDocument)
		err = s.Set(c.value)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", script, err, c.want)
		}
		if got := string(s.Bytes()); got != script {
			t.Errorf("the script has changed to %s", got)
		}
	}
}

// Any script is read, and any change of an option has its effect.
func FuzzScript(f *testing.F) {
	for _, text := range []string{start, start + " --" + tpKey + "=4 \"$@\"", "TP=4\n" + start + " --" + tpKey + " $TP",
		"CONFIG_FILE=job.toml ./run_train.sh --" + tpKey + " 4", start + " --" + modulesKey + " a,b c " +
			"--debug.seed None"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		im, err := readBoth(text, interop.Options{Devices: 8})
		if err != nil {
			return
		}
		parts, ok := im.Doc.(interop.Parts)
		if !ok {
			return // no script
		}
		d := parts[1].Doc.(*scriptDocument)
		if string(d.Bytes()) != text {
			t.Fatal("an unedited script has changed")
		}
		if _, has := d.Get(tpKey); has && d.Set(interop.Value{Key: tpKey, Text: "16"}) == nil {
			if got, _ := d.Get(tpKey); got != "16" {
				t.Fatalf("set %s to 16, got %q", tpKey, got)
			}
		}
		if err := d.Remove(tpKey); err == nil {
			if _, has := d.Get(tpKey); has {
				t.Fatal("a removed option is there")
			}
		}
	})
}
