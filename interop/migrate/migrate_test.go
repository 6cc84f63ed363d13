package migrate

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
)

// text is a plain list of a small model on eight GPUs.
const text = `# plain
model = gpt2-124m
train.global_batch = 64
train.seq_len = 1024
tp = 2  # as always
zero = 1
micro_batch = 1
recompute = full
devices = 8
log = yes
magic = 7
`

func noFiles(string) ([]byte, error) { return nil, fs.ErrNotExist }

func overrides(sets ...string) (out []spec.Override) {
	for _, s := range sets {
		out = append(out, spec.SetFlag(s))
	}
	return out
}

// source reads a text as run.txt.
func source(t *testing.T, text string) *Source {
	t.Helper()
	text = strings.Replace(text, "model = ", "model.base = ", 1)
	s, err := Read([]interop.File{{Name: "jobs/run.txt", Data: []byte(text)}}, "", interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func report(t *testing.T, text string, sets ...string) *Report {
	t.Helper()
	s := source(t, text)
	q, err := s.Question(noFiles, overrides(append(sets, "cluster.node=dgx-h100")...)...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReport(s, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// questionOfFiles reads files as the question that they ask, with overrides.
func questionOfFiles(t *testing.T, files []interop.File, read planner.ReadFile,
	over []spec.Override) (*Source, *planner.Question) {
	t.Helper()
	s, err := ReadFor(files, "", interop.Options{}, read, over)
	if err != nil {
		t.Fatal(err)
	}
	q, err := s.Question(read, over...)
	if err != nil {
		t.Fatal(err)
	}
	return s, q
}

// reportOf reads files and checks their plan.
func reportOf(t *testing.T, files []interop.File, read planner.ReadFile, over []spec.Override) *Report {
	t.Helper()
	s, q := questionOfFiles(t, files, read, over)
	r, err := NewReport(s, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reportsOfShort are the reports that tests have asked for, by files and overrides. Tests of this package run in
// sequence and change no report.
var reportsOfShort = map[string]*Report{}

// reportOfShort checks the plan of a short file on H100. The search runs once for all tests.
func reportOfShort(t *testing.T, one *shortFile) *Report {
	t.Helper()
	key := fmt.Sprintf("%s %q", one.files, one.sets)
	if reportsOfShort[key] == nil {
		reportsOfShort[key] = reportOf(t, one.files, noFiles, onH100(one.sets))
	}
	return reportsOfShort[key]
}

// Edits are diffs of the user's file: they change the keys of the plan, and nothing else.
func TestEditsAreDiffsOfTheFile(t *testing.T) {
	r := report(t, text)
	if r.Verdict != planner.CheckFine || r.Format != "plain" || r.Sure != "certain" {
		t.Fatalf("%s, %s, %s", r.Message, r.Format, r.Sure)
	}
	i := slices.IndexFunc(r.Edits, func(e Edit) bool { return slices.Equal(e.Keys, []string{"recompute"}) })
	want := `--- jobs/run.txt
+++ jobs/run.txt
@@ -5,7 +5,7 @@
 tp = 2  # as always
 zero = 1
 micro_batch = 1
-recompute = full
+recompute = none
 devices = 8
 log = yes
 magic = 7
`
	if diff := cmp.Diff(want, r.Edits[i].Diff); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(r.Diff, "-tp = 2  # as always\n+tp = 1  # as always\n") || len(r.Env) != 0 {
		t.Errorf("the best plan's diff:\n%s%+v", r.Diff, r.Env)
	}
	pipelined := slices.IndexFunc(r.Edits, func(e Edit) bool { return slices.Equal(e.Keys, []string{"pp"}) })
	if note := r.Edits[pipelined].DiffNote; !strings.Contains(note, "a plain list has no pipeline") {
		t.Errorf("pp: %q", note)
	}
	if n := r.Uses; n[interop.Taken] != 8 || n[interop.NoEffect] != 1 || n[interop.Unsupported] != 1 {
		t.Errorf("%v", n)
	}
}

// Variables that belong to the best plan are named, with the value in the file.
func TestVariablesOfThePlan(t *testing.T) {
	r := report(t, strings.NewReplacer("gpt2-124m", "llama3-70b", "devices = 8", "devices = 64").Replace(text))
	want := []Env{{"CONNECTIONS", "1", "", false, "needed with tp", false, r.Env[0].Keys}}
	if r.Best == nil || r.Best.Plan.TP == 1 {
		t.Fatalf("the best plan is %+v", r.Best)
	}
	if diff := cmp.Diff(want, r.Env); diff != "" {
		t.Error(diff)
	}
}

// The variables of the file's own plan are named too. An edit keeps a variable that its plan does not need.
func TestVariablesOfTheOwnPlan(t *testing.T) {
	const arguments = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 16 --hidden-size 2048 " +
		"--seq-length 2048 --num-attention-heads 32 --max-position-embeddings 2048 --vocab-size 32000 --bf16 " +
		"--micro-batch-size 1 " +
		"--global-batch-size 64 \\\n  --tensor-model-parallel-size 8\n"
	const name = "CUDA_DEVICE_MAX_CONNECTIONS"
	for _, export := range []string{"", "export " + name + "=1\n"} {
		file := interop.File{Name: "run.sh", Data: []byte(export + arguments)}
		r := reportOf(t, []interop.File{file}, noFiles, onH100(nil))
		if r.Best.Plan.TP > 1 || len(r.Env) > 0 {
			t.Fatalf("the best plan is %v, with %v", r.Best.Plan, r.Env)
		}
		if len(r.EnvYours) != 1 || r.EnvYours[0].Name != name || r.EnvYours[0].IsSet != (export != "") {
			t.Errorf("%q: %+v", export, r.EnvYours)
		}
		if !strings.Contains(r.Diff, "-  --tensor-model-parallel-size 8\n") || strings.Contains(r.Diff, "-"+export) &&
			export != "" {
			t.Errorf("the best plan's diff:\n%s", r.Diff)
		}
	}
}

// Errors are at the key of the user's file.
func TestErrorsAreInTheFile(t *testing.T) {
	r := report(t, strings.Replace(text, "tp = 2", "tp = 3", 1))
	if r.Verdict != planner.CheckIllegal {
		t.Fatal(r.Message)
	}
	if at := r.Diags[0].Pos; at != (ir.Pos{File: "jobs/run.txt", Line: 5, Column: 1}) {
		t.Errorf("%v", r.Diags[0])
	}
	s := source(t, strings.Replace(text, "train.global_batch = 64", "train.global_batch = 0", 1))
	_, err := s.Question(noFiles, overrides("cluster.node=dgx-h100")...)
	want := "jobs/run.txt:3:1: train.global_batch is 0; it must be at least 1 [OutOfRange]"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Without a cluster, a batch that follows from the number of devices is not called missing.
func TestBatchOfUnknownCluster(t *testing.T) {
	s := source(t, strings.Replace(text, "train.global_batch = 64\n", "", 1))
	for _, cluster := range []string{"cluster.node=dgx-h10", "train.seed=1"} {
		_, err := s.Question(noFiles, overrides(cluster)...)
		if err == nil || strings.Contains(err.Error(), "global_batch") || !strings.Contains(err.Error(), "cluster") {
			t.Errorf("%s: %v", cluster, err)
		}
	}
	_, err := s.Question(noFiles, overrides("cluster.node=dgx-h100")...)
	if err == nil || !strings.Contains(err.Error(), "train.global_batch is missing") {
		t.Errorf("%v", err)
	}
}

// A file that says that blocks are recomputed, and not how many, means all of them.
func TestAllBlocksAreRecomputed(t *testing.T) {
	r := report(t, text)
	if got := r.Yours.Plan.RecomputeWords(); got != "recompute full" {
		t.Errorf("yours has %s", got)
	}
	s := source(t, strings.Replace(text, "recompute = full", "recompute = none", 1))
	_, err := s.Question(noFiles, overrides("cluster.node=dgx-h100")...)
	if err != nil || s.Has("plan.recompute_layers") {
		t.Errorf("%v: %v", s.Fields, err)
	}
}

// A batch that the user gives changes the number of micro-batches.
func TestBatchOfFlags(t *testing.T) {
	const more = "plan.micro_batches = 16\n"
	if r := report(t, text+more); r.Verdict != planner.CheckFine || r.Yours.Plan.MicroBatches != 16 {
		t.Errorf("%s", r.Message)
	}
	if r := report(t, text+more, "train.global_batch=32"); r.Verdict != planner.CheckFine ||
		r.Yours.Plan.MicroBatches != 8 {
		t.Errorf("%s", r.Message)
	}
}

// The number of devices that the file says is a number of nodes of the user's cluster; flags replace it.
func TestDevicesOfTheFile(t *testing.T) {
	for _, c := range []struct {
		devices string
		sets    []string
		nodes   int
		each    int
	}{
		{"8", nil, 1, 8}, {"16", nil, 2, 8}, {"4", nil, 1, 4}, {"8", []string{"cluster.nodes=4"}, 4, 8},
		{"8", []string{"cluster.devices=2"}, 1, 2},
	} {
		s := source(t, strings.Replace(text, "devices = 8", "devices = "+c.devices, 1))
		q, err := s.Question(noFiles, overrides(append(c.sets, "cluster.node=dgx-h100")...)...)
		if err != nil {
			t.Fatal(err)
		}
		if q.Hardware.Nodes != c.nodes || q.Hardware.Node.Devices != c.each {
			t.Errorf("%s devices, %v: %d nodes of %d", c.devices, c.sets, q.Hardware.Nodes, q.Hardware.Node.Devices)
		}
	}
}

// The number of devices that flags give replaces the file's. Without either, the file trains on the whole cluster.
func TestDevicesOfFlags(t *testing.T) {
	for _, c := range []struct {
		sets    []string
		n       int
		isGiven bool
	}{
		{nil, 0, false}, {[]string{"cluster.node=dgx-h100"}, 8, false},
		{[]string{"cluster.node=dgx-h100", "cluster.nodes=4"}, 32, true}, {[]string{"cluster.node=64xh100"}, 64, true},
		{[]string{"cluster.node=dgx-h100", "cluster.devices=2"}, 2, true},
		{[]string{"cluster.node=dgx-h101"}, 0, false}, {[]string{"cluster.nodes=4"}, 0, false},
	} {
		if n, _, isGiven := devicesOf(noFiles, overrides(c.sets...)); n != c.n || isGiven != c.isGiven {
			t.Errorf("%v: %d, %v; want %d, %v", c.sets, n, isGiven, c.n, c.isGiven)
		}
	}
	for _, c := range []struct {
		line string
		sets []string
		want int
	}{
		{"devices = 8\n", []string{"cluster.node=dgx-h100", "cluster.nodes=2"}, 16},
		{"devices = 8\n", []string{"cluster.node=dgx-h100"}, 8}, {"", []string{"cluster.node=dgx-h100"}, 8},
		{"", nil, 0},
	} {
		file := interop.File{Name: "run.txt", Data: []byte("# plain\n" + c.line)}
		s, err := ReadFor([]interop.File{file}, "plain", interop.Options{}, noFiles, overrides(c.sets...))
		if err != nil || s.Devices != c.want {
			t.Errorf("%q, %v: %d devices, want %d (%v)", c.line, c.sets, s.Devices, c.want, err)
		}
	}
}

// The job of an import has the fields of the file and of the flags.
func TestAddedFields(t *testing.T) {
	s := source(t, text)
	s.Add(noFiles, overrides("cluster.node=dgx-h100", "train.seq_len=null")...)
	want := `# Imported from jobs/run.txt (plain).
model:
  base: gpt2-124m                        # model.base, line 2
train:
  engine: megatron                       # the format
  global_batch: 64                       # train.global_batch, line 3
cluster:
  nodes: 1                               # number of devices in jobs/run.txt
  node: dgx-h100                         # --set cluster.node=dgx-h100
plan:
  tp: 2                                  # tp, line 5
  zero: 1                                # zero, line 6
  micro_batch: 1                         # micro_batch, line 7
  recompute: full                        # recompute, line 8
  pp: 1                                  # default of pp
`
	if diff := cmp.Diff(want, string(s.JobText())); diff != "" {
		t.Error(diff)
	}
}

// If an option says the number of devices, the job names the option and its line.
func TestAddedDevicesNameTheirOption(t *testing.T) {
	s := source(t, text)
	key := interop.Key{Name: "--nproc_per_node", Use: interop.Taken, As: []string{"devices: 8"},
		Pos: ir.Pos{File: "jobs/run.txt", Line: 9, Column: 1}}
	s.Keys = append(s.Keys, key)
	s.Add(noFiles, overrides("cluster.node=dgx-h100")...)
	const want = "  nodes: 1                               # --nproc_per_node, line 9\n"
	if got := string(s.JobText()); !strings.Contains(got, want) {
		t.Errorf("%s\nlacks %q", got, want)
	}
}

// question is a small model on eight GPUs.
func question(t *testing.T, sets ...string) *planner.Question {
	t.Helper()
	q, err := planner.Load("", noFiles, overrides(append([]string{"model=gpt2-124m", "cluster=dgx-h100",
		"train.global_batch=64", "train.seq_len=1024"}, sets...)...)...)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func decide(t *testing.T, q *planner.Question) ir.Plan {
	t.Helper()
	d, err := planner.Decide(q, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.Best.Plan
}

// An export is a whole file, or the user's own with what the plan changes.
func TestExport(t *testing.T) {
	q := question(t, "train.engine=megatron", "plan.tp=4", "plan.pp=1", "plan.recompute=none", "plan.zero=1",
		"plan.micro_batch=4", "plan.sp=true")
	plan := decide(t, q)
	whole, err := Export(&plain, q, plan, nil, interop.Options{})
	want := "# plain\ntp = 4\npp = 1\nsp = true\nzero = 1\nmicro_batch = 4\nrecompute = none\n"
	if err != nil || string(whole.Text) != want {
		t.Errorf("%v, %v", whole, err)
	}
	edited, err := Export(&plain, q, plan, []interop.File{{Name: "run.txt",
		Data: []byte("# plain, of ours\ntp = 2  # as always\nlog = yes\nrecompute = none\n")}}, interop.Options{})
	want = "# plain, of ours\ntp = 4  # as always\nlog = yes\nrecompute = none\nsp = true\nzero = 1\n" +
		"micro_batch = 4\n"
	if err != nil || string(edited.Text) != want {
		t.Errorf("%v, %v", edited, err)
	}
}

// An edit does not put environment variables into a file that is no script, nor change the engine of a file unless the
// job names it.
func TestEditsOfAccelerate(t *testing.T) {
	q := question(t, "train.engine=fsdp", "plan.zero=3", "plan.micro_batches=2")
	plan := decide(t, q)
	f, err := FormatOf("accelerate")
	if err != nil {
		t.Fatal(err)
	}
	like := interop.File{Name: "a.yaml", Data: []byte("distributed_type: FSDP\nnum_machines: 1\nnum_processes: 8\n" +
		"mixed_precision: bf16\nfsdp_config:\n  fsdp_version: 2\n")}
	edited, err := Export(f, q, plan, []interop.File{like}, interop.Options{})
	if err != nil || strings.Contains(string(edited.Text), "ACCELERATE") {
		t.Errorf("%s, %v", edited, err)
	}
	if notes := edited.Notes; len(notes) != 1 || !strings.HasPrefix(notes[0],
		"set ACCELERATE_GRADIENT_ACCUMULATION_STEPS=2 in the environment (or accelerate launch "+
			"--gradient_accumulation_steps 2; the file has no batch") {
		t.Errorf("%q", edited.Notes)
	}
	like.Data = []byte("distributed_type: DEEPSPEED\nnum_processes: 8\n")
	const want = "a.yaml:1:1: the file trains with engine deepspeed, and the job names no engine; type --engine " +
		"deepspeed to keep it, or --engine fsdp to change the file to that engine [CannotExport]"
	if err := CheckLike(f, []interop.File{like}, interop.Options{}); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	_, err = Export(f, question(t), plan, []interop.File{like}, interop.Options{})
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if edited, err := Export(f, q, plan, []interop.File{like}, interop.Options{}); err != nil ||
		!strings.HasPrefix(string(edited.Text), "distributed_type: FSDP\n") {
		t.Errorf("%s, %v", edited, err)
	}
}

// A plan that the format's engine cannot run is refused, with the best one that it can; so is one that the format
// cannot express.
func TestRefusedExports(t *testing.T) {
	const best = "; the best plan that engine megatron can run and format plain can express is "
	q := question(t, "plan.schedule=zb-v", "plan.pp=2")
	_, err := Export(&plain, q, decide(t, q), nil, interop.Options{})
	if err == nil || !strings.Contains(err.Error(), "plan.schedule zb-v: engine megatron runs pipelines as "+
		"1f1b and interleaved (engine planc runs every schedule)") || !strings.Contains(err.Error(), best) {
		t.Errorf("%v", err)
	}
	q = question(t, "train.engine=megatron", "plan.pp=2")
	_, err = Export(&plain, q, decide(t, q), nil, interop.Options{})
	if err == nil || !strings.Contains(err.Error(), "pp 2: a plain list has no pipeline"+best) {
		t.Errorf("%v", err)
	}
}

// Files that no format recognizes, and names that no format has, are refused with what is possible.
func TestUnknownFormats(t *testing.T) {
	_, err := Read([]interop.File{{Name: "a.md", Data: []byte("words")}}, "", interop.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "a.md:1:1: this is no file of a trainer that planc recognizes; ") {
		t.Errorf("%v", err)
	}
	_, err = Read(nil, "plian", interop.Options{})
	if err == nil || !strings.Contains(err.Error(), "there is no format plian; planc help formats lists them; ") ||
		!strings.Contains(err.Error(), "did you mean plain?") {
		t.Errorf("%v", err)
	}
	_, err = Read(nil, "slurm", interop.Options{})
	if err == nil || !strings.Contains(err.Error(), "planc writes files of format slurm and does not read them") {
		t.Errorf("%v", err)
	}
}
