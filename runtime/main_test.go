package runtime

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/cli"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/settings"
)

// TestMain lets this test binary be a training binary, for the tests of signals.
func TestMain(m *testing.M) {
	if dir := os.Getenv("PLANC_TEST_MAIN"); dir != "" {
		p := bigram[float32](2, 1)
		p.Settings.Train.Steps = 1e6
		if arena, err := strconv.Atoi(os.Getenv("PLANC_TEST_ARENA")); err == nil {
			p.Stages[0].Arena.Size = arena
		}
		if each, err := time.ParseDuration(os.Getenv("PLANC_TEST_SLEEP")); err == nil {
			step := p.Segments[0].Forward
			p.Segments[0].Forward = func(r *rank.Rank, b *rank.Block) {
				time.Sleep(each)
				step(r, b)
			}
		}
		p.Settings.Data.Train = []File{{Path: filepath.Join(dir, "tokens.bin"), Weight: 1}}
		args := append([]string{"--dir", dir}, strings.Fields(os.Getenv("PLANC_TEST_ARGS"))...)
		os.Exit(cli.Execute(p, args, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// sameSignal is the time within which a second signal counts as a copy of the first, as package cli has it.
const sameSignal = 500 * time.Millisecond

// trained is the number of lines that a run has written so far.
func trained(dir string) int {
	text, _ := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	return bytes.Count(text, []byte("\"loss\""))
}

func TestSignals(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "tokens.bin"),
		bytes.Repeat([]byte("\x01\x00\x04\x00\x02\x00\x07\x00\x00\x00"), 300), 0o666))
	for attempt, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1} {
		before := trained(dir)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PLANC_TEST_MAIN="+dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		must(t, cmd.Start())
		for begin := time.Now(); trained(dir) <= before+1 && time.Since(begin) < 5*time.Minute; {
			time.Sleep(10 * time.Millisecond)
		}
		must(t, cmd.Process.Signal(sig))
		err := cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != exit.OnRequest {
			t.Fatalf("attempt %d: %v, exit %d: %s", attempt, err, code, stderr.String())
		}
		c, _, err := ckpt.Newest(filepath.Join(dir, "checkpoints"))
		if err != nil || c == nil || c.Manifest.Step == 0 {
			t.Fatalf("checkpoint %+v, %v: %s", c, err, stderr.String())
		}
		if resumed := strings.Contains(stderr.String(), "resume: step "); resumed != (attempt > 0) {
			t.Errorf("attempt %d: %s", attempt, stderr.String())
		}
	}
	steps, _ := lines(t, dir)
	for i, s := range steps {
		if s.Step != i+1 {
			t.Fatalf("line %d is of step %d", i+1, s.Step)
		}
	}
}

// After --max-time a run saves a checkpoint and ends, as on a signal.
func TestMaxTime(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "tokens.bin"), bytes.Repeat([]byte("\x01\x00\x04\x00"), 300), 0o666))
	run := func(limit string) (code int, stderr string) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PLANC_TEST_MAIN="+dir, "PLANC_TEST_ARGS=--max-time "+limit)
		var out bytes.Buffer
		cmd.Stderr = &out
		cmd.Run() // the exit code says how it ended
		return cmd.ProcessState.ExitCode(), out.String()
	}
	code, stderr := run("500ms")
	if code != exit.OnRequest || !strings.Contains(stderr,
		"bigram: --max-time 500ms is over: stopping after this step, with a checkpoint; a signal stops at once\n") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	c, _, err := ckpt.Newest(filepath.Join(dir, "checkpoints"))
	if steps, _ := lines(t, dir); err != nil || c == nil || int(c.Manifest.Step) != len(steps) {
		t.Errorf("checkpoint %+v after %d steps, %v", c, len(steps), err)
	}
	code, stderr = run("soon")
	if want := "--max-time soon: must be a positive duration, such as 90m or 23h50m"; code != exit.Input ||
		!strings.Contains(stderr, want) {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// --fast-dev-run tries all parts of a run and leaves no trace.
func TestFastDevRun(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "run")
	must(t, os.Mkdir(dir, 0o777))
	must(t, os.WriteFile(filepath.Join(dir, "tokens.bin"), bytes.Repeat([]byte("\x01\x00\x04\x00"), 300), 0o666))
	before := tree(t, parent)
	for args, want := range map[string]string{"": "tried   a step and a checkpoint, in a folder that is removed",
		" --set data.valid=0.2 --set train.epochs=3": "tried   a step, an evaluation and a checkpoint, in a folder"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PLANC_TEST_MAIN="+dir, "PLANC_TEST_ARGS=--fast-dev-run"+args)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "at step 1") ||
			!strings.Contains(string(out), "checkpoints/step-00000001") {
			t.Errorf("%s: %v: %s", args, err, out)
		}
		if after := tree(t, parent); !slices.Equal(before, after) {
			t.Errorf("%s: the folder has %v", args, after)
		}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PLANC_TEST_MAIN="+dir, "PLANC_TEST_ARGS=--fast-dev-run --export x")
	out, _ := cmd.CombinedOutput()
	if want := "--fast-dev-run trains and --export does not: leave one of them out"; cmd.ProcessState.ExitCode() !=
		exit.Input || !strings.Contains(string(out), want) {
		t.Errorf("%s", out)
	}
}

// --lr-find trains at growing rates until the loss diverges, suggests one, and leaves no trace.
func TestLRFindLeavesNoTrace(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "run")
	must(t, os.Mkdir(dir, 0o777))
	must(t, os.WriteFile(filepath.Join(dir, "tokens.bin"),
		bytes.Repeat([]byte("\x01\x00\x04\x00\x02\x00\x07\x00\x00\x00"), 900), 0o666))
	before := tree(t, parent)
	for args, want := range map[string]string{
		"": "\nsuggested --set train.optimizer.lr=",
		" --set data.valid=0.2 --set train.early_stop.patience=1": "tried     100 steps, in a folder that is removed",
		" --steps 5":  "\nsuggested nothing: the loss does not fall, or there are too few steps; try --steps 10\n",
		" --export x": "--lr-find trains and --export does not: leave one of them out",
		" --log json": `"suggested_lr":`,
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PLANC_TEST_MAIN="+dir, "PLANC_TEST_ARGS=--lr-find"+args)
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), want) || (err != nil) != strings.Contains(args, "export") {
			t.Errorf("%s: %v: %s", args, err, out)
		}
		if strings.Contains(string(out), "spikes") {
			t.Errorf("%s: a range test warns of its losses: %s", args, out)
		}
		if after := tree(t, parent); !slices.Equal(before, after) {
			t.Errorf("%s: the folder has %v", args, after)
		}
	}
}

// A signal that occurs twice, as timeout(1) and a closing terminal send theirs, is one request; one that comes later
// ends the process.
func TestSignalsThatComeTwice(t *testing.T) {
	for pause, want := range map[time.Duration]int{20 * time.Millisecond: exit.OnRequest, 2 * sameSignal: -1} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "tokens.bin"),
			bytes.Repeat([]byte("\x01\x00\x04\x00\x02\x00\x07\x00\x00\x00"), 300), 0o666))
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PLANC_TEST_MAIN="+dir, "PLANC_TEST_SLEEP="+(3*sameSignal/2).String())
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		must(t, cmd.Start())
		for begin := time.Now(); trained(dir) < 1 && time.Since(begin) < 5*time.Minute; {
			time.Sleep(10 * time.Millisecond)
		}
		must(t, cmd.Process.Signal(syscall.SIGTERM))
		time.Sleep(pause)
		must(t, cmd.Process.Signal(syscall.SIGTERM))
		err := cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("after %v: %v, exit %d, want %d: %s", pause, err, code, want, stderr.String())
		}
	}
}

// SIGABRT shows where a run is, by all goroutines' stacks, and ends it at once.
func TestAbortShowsStacks(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "tokens.bin"),
		bytes.Repeat([]byte("\x01\x00\x04\x00\x02\x00\x07\x00\x00\x00"), 300), 0o666))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PLANC_TEST_MAIN="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	must(t, cmd.Start())
	for begin := time.Now(); trained(dir) < 1 && time.Since(begin) < 5*time.Minute; {
		time.Sleep(10 * time.Millisecond)
	}
	must(t, cmd.Process.Signal(syscall.SIGABRT))
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(stderr.String(), "SIGABRT: abort") ||
		!strings.Contains(stderr.String(), "driver.(*run).train") {
		t.Errorf("%v, exit %d: %s", err, code, stderr.String())
	}
	if c, _, err := ckpt.Newest(filepath.Join(dir, "checkpoints")); c != nil || err != nil {
		t.Errorf("checkpoint %v, %v", c, err)
	}
}

// Memory that a limit of the process does not allow is refused with the numbers; Go would end the process with status
// 2.
func TestMemoryLimitOfTheProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/limits"); err != nil {
		t.Skip("needs /proc")
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "tokens.bin"), bytes.Repeat([]byte("\x01\x00\x04\x00"), 300), 0o666))
	cmd := exec.Command("sh", "-c", `ulimit -v 6000000 && exec "$0"`, os.Args[0])
	cmd.Env = append(os.Environ(), "PLANC_TEST_MAIN="+dir, "PLANC_TEST_ARENA="+strconv.Itoa(4<<30))
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "ThreadSanitizer") {
		t.Skip("the race detector needs more address space")
	}
	if code := cmd.ProcessState.ExitCode(); code != exit.Cannot ||
		!strings.Contains(string(out), "\nbigram: not enough memory: 2 × 4.0 GiB for the ranks' arenas, ") ||
		!strings.Contains(string(out), " free within ulimit -v: ") {
		t.Errorf("%v, exit %d: %s", err, code, out)
	}
}

// A panic of the binary's main goroutine is a failure (1), not Go's own status of wrong input (2); with where it was.
func TestPanicIsAFailure(t *testing.T) {
	errs, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	must(t, err)
	defer errs.Close()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "tokens.bin"), bytes.Repeat([]byte("\x01\x00\x04\x00"), 300), 0o666))
	p := bigram[float32](2, 1)
	p.Settings.Data.Train = []File{{Path: filepath.Join(dir, "tokens.bin"), Weight: 1}}
	p.Stages = nil
	code := cli.Execute(p, []string{"--dir", dir}, io.Discard, errs)
	b, err := os.ReadFile(errs.Name())
	must(t, err)
	if code != exit.Failed || !strings.Contains(string(b), "\nbigram: runtime error: index out of range") ||
		!strings.Contains(string(b), "rank.New(") {
		t.Errorf("exit %d: %s", code, b)
	}
}

// runCommand runs the binary's command line on a text file of bytes below vocab.
func runCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	errs, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	must(t, err)
	defer errs.Close()
	var out bytes.Buffer
	code = cli.Execute(bigram[float32](2, 1), args, &out, errs)
	b, err := os.ReadFile(errs.Name())
	must(t, err)
	return code, out.String(), string(b)
}

// What a program shows of flags, files and its own name has no characters that a terminal obeys or hides, for people or
// as JSON.
func TestShowsNoControlCharacters(t *testing.T) {
	const evil = "a\x1b]0;owned\x07\u202eb\ufeff"
	dir := filepath.Join(t.TempDir(), evil)
	must(t, os.Mkdir(dir, 0o777))
	tokens := filepath.Join(dir, "tokens.bin")
	must(t, os.WriteFile(tokens, bytes.Repeat([]byte("\x01\x00\x04\x00\x02\x00\x07\x00\x00\x00"), 300), 0o666))
	for _, args := range [][]string{
		{"--" + evil}, {evil}, {"--set", evil}, {"--set", evil + "=1"}, {"--data", filepath.Join(dir, evil), "--dir",
			dir}, {"--resume", evil, "--dir", dir},
		{"--data", tokens, "--dir", dir, "--steps", "2"}, {"--data", tokens, "--dir", dir, "--steps", "2"}, {"--help"},
		{"--data", tokens, "--dir", dir, "--steps", "3", "--log", "json"}, {"--log", "json", "--resume", evil,
			"--dir", dir},
	} {
		code, out, errs := runCommand(t, args...)
		if strings.ContainsAny(out+errs, "\x1b\x07\u202e\ufeff") || out+errs == "" {
			t.Errorf("%q ends with %d and prints %q and %q", args, code, out, errs)
		}
	}
}

func TestFlagMessages(t *testing.T) {
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"--step 3", 2, "bigram: unknown flag --step; did you mean --steps?\n"},
		{"--foo", 2, "bigram: unknown flag --foo; --help lists the flags\n"},
		{"--checkpoint-evry 3", 2, "bigram: unknown flag --checkpoint-evry; did you mean --checkpoint-every?\n"},
		{"--lr 1e-4", 2, "bigram: unknown flag --lr; use --set train.optimizer.lr=1e-4\n"},
		{"--learning_rate=1e-4", 2, "bigram: unknown flag --learning-rate; use --set train.optimizer.lr=1e-4\n"},
		{"--lr --steps 3", 2, "bigram: unknown flag --lr; use --set train.optimizer.lr=N\n"},
		{"--epochs 2", 2, "bigram: unknown flag --epochs; use --set train.epochs=2\n"},
		{"--max-steps 9", 2, "bigram: unknown flag --max-steps; use --steps 9\n"},
		{"--batch-size 64", 2, "bigram: unknown flag --batch-size; the batch is compiled into the program: compile " +
			"it again with --global-batch 64\n"},
		{"--gpus 4", 2, "bigram: unknown flag --gpus; the devices are compiled into the program: compile it again " +
			"with another --cluster, such as --cluster 8xh100\n"},
		{"--steps", 2, "bigram: --steps needs a value: --steps N\n"},
		{"train", 2, "bigram: unexpected argument train; --help lists the flags\n"},
		{"--nodes 2", 3, "bigram: --nnodes and the flags that go with it start several processes. Not supported yet: " +
			"programs for CPUs on several processes. " +
			"Start the binary once: it runs all its ranks in one process\n"},
		{"--nnodes=2 --nod_rank=1", 2, "bigram: unknown flag --nod-rank; did you mean --node-rank?\n"},
		{"--join-timeout 3", 2, "bigram: --join-timeout 3: must be a positive duration, such as 90s or 10m\n"},
		{"--timeout 3", 2, "bigram: --timeout 3: must be a positive duration, such as 90s or 10m\n"},
		{"--timeout=-1s", 2, "bigram: --timeout -1s: must be a positive duration, such as 90s or 10m\n"},
		{"--set lr", 2, "bigram: --set lr: write it as --set lr=VALUE\n"},
		{"--cpu-isa=sse", 2, "bigram: --cpu-isa sse: must be one of auto, amx, avx512, avx2, portable\n"},
		{"--threads 0", 2, "bigram: --threads 0: must be a number from 1 to 1024\n"},
		{"--threads 1000000000", 2, "bigram: --threads 1000000000: must be a number from 1 to 1024\n"},
		{"--log xml", 2, "bigram: --log xml: must be text or json\n"},
		{"--data /no/such.txt", 2, "bigram: data: there is no file /no/such.txt\n"},
	} {
		code, _, stderr := runCommand(t, append(strings.Fields(test.args), "--dir="+t.TempDir())...)
		if test.args == "--steps" {
			code, _, stderr = runCommand(t, "--steps")
		}
		if code != test.code || !strings.HasSuffix(stderr, test.want) {
			t.Errorf("%s: exit %d, stderr %q, want %d, %q", test.args, code, stderr, test.code, test.want)
		}
	}
}

// A program for CPUs refuses a launcher's variables that say that there are several processes, whether planc obeys them
// on GPUs or not.
func TestLaunchersAreRefused(t *testing.T) {
	const once = "Not supported yet: programs for CPUs on several processes. Start the binary once: it runs all its " +
		"ranks in one process"
	for _, c := range []struct{ name, value, want string }{
		{"WORLD_SIZE", "8", "WORLD_SIZE=8 (torchrun) says that this process is one of several. " + once +
			" (unset WORLD_SIZE if no launcher set it)"},
		{"JOB_COMPLETION_INDEX", "0", "JOB_COMPLETION_INDEX=0 (a Kubernetes Indexed Job) says that this process is " +
			"one of several. " + once + ", with --nnodes 1"},
		{"FLUX_JOB_SIZE", "2", "FLUX_JOB_SIZE=2 (flux run) says that this process is one of several. " + once +
			", with --nnodes 1"},
		{"NODE_RANK", "1", "NODE_RANK=1 (Lightning) says that this process is one of several. " + once +
			", with --nnodes 1"},
		{"MPI_LOCALRANKID", "1", "MPI_LOCALRANKID=1 (mpirun) says that this process is one of several. " + once +
			", with --nnodes 1"},
		{"PADDLE_TRAINER_ID", "1", "PADDLE_TRAINER_ID=1 (PaddlePaddle's launcher) says that this process is one of " +
			"several. " + once + ", with --nnodes 1"},
		{"PET_NNODES", "2", "PET_NNODES says that this process is one of several. " + once +
			" (unset PET_NNODES if no launcher set it)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			if c.name == "PET_NNODES" {
				t.Setenv("PET_NODE_RANK", "1") // and no PET_MASTER_ADDR: it would not help
			}
			if code, _, stderr := runCommand(t, "--dir", t.TempDir()); code != exit.Cannot ||
				stderr != "bigram: "+c.want+"\n" {
				t.Errorf("exit %d, %q", code, stderr)
			}
		})
	}
	t.Setenv("JOB_COMPLETION_INDEX", "0")
	if code, _, stderr := runCommand(t, "--dir", t.TempDir(), "--nnodes", "1"); code == exit.Cannot ||
		!strings.Contains(stderr, "data.train names no files") {
		t.Errorf("a job of one pod goes on to its data: exit %d, %q", code, stderr)
	}
}

func TestCommandTrainsOnAFile(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "tokens.bin")
	must(t, os.WriteFile(text, bytes.Repeat([]byte("\x01\x00\x04\x00\x02\x00\x07\x00\x00\x00"), 300), 0o666))
	args := []string{"--dir", dir, "--data", text, "--set", "data.valid=0.1", "--steps=20"}
	code, _, stderr := runCommand(t, append(args, "--set", "train.eval.sample=\x01")...)
	want := "bigram: train.eval.sample is set, but the data are tokens of a vocabulary of 11: a prompt can be text " +
		"only if data.tokenizer names their tokenizer, or if the tokens are bytes, " +
		"as in text files or with a vocabulary of 256; remove it (--set train.eval.sample=null)\n"
	if code != exit.Input || stderr != want {
		t.Errorf("with a prompt: exit %d: %q", code, stderr)
	}
	code, stdout, stderr := runCommand(t, args...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{"loss    ", ", validation ", "step    predicted unknown, measured ",
		"memory  predicted ", "binary  ",
		"metrics " + filepath.Join(dir, report.MetricsFile), "saved   " + filepath.Join(dir, "checkpoints",
			"step-00000020")} {
		if !strings.Contains(stdout, want) {
			t.Errorf("stdout lacks %q:\n%s", want, stdout)
		}
	}
	code, stdout, stderr = runCommand(t, args...)
	if code != 0 || !strings.Contains(stdout, "nothing was left to do after step 20") ||
		!strings.Contains(stderr, "resume: step 20 of 20") ||
		!strings.Contains(stderr, "\nnothing to do: step 20 of 20 is done; `--steps 40` continues, `--resume never` "+
			"starts over\n") {
		t.Errorf("again: exit %d\n%s%s", code, stdout, stderr)
	}
	t.Setenv("PLANC_RUN", "1") // by planc run
	for _, word := range []string{"auto", "latest", "last"} {
		_, _, stderr = runCommand(t, append(args, "--resume", word)...)
		if !strings.Contains(stderr, "\nnothing to do: step 20 of 20 is done; `-- --steps 40` continues, `-- "+
			"--resume never` "+
			"starts over\n") {
			t.Errorf("--resume %s under planc run: %s", word, stderr)
		}
	}
}

// A learning rate that no recipe has is warned of, with what was meant.
func TestHighRate(t *testing.T) {
	for _, x := range []struct {
		lr   float64
		kind OptimizerKind
		want string
	}{
		{3e4, AdamW, "train.optimizer.lr is 30000; adamw usually diverges above 0.1; did you mean 3e-4?"},
		{6.25e5, Adam, "train.optimizer.lr is 625000; adam usually diverges above 0.1; did you mean 6.25e-5?"},
		{0.3, AdamW, "train.optimizer.lr is 0.3; adamw usually diverges above 0.1"},
		{0.1, AdamW, ""}, {3, SGD, ""}, {10, SGD, ""},
		{20, SGD, "train.optimizer.lr is 20; sgd usually diverges above 10; did you mean 2e-1?"},
	} {
		if got := settings.HighRate(&OptimizerSettings{LR: x.lr}, x.kind); got != x.want {
			t.Errorf("%g with %v: %q, want %q", x.lr, x.kind, got, x.want)
		}
	}
	dir := t.TempDir()
	text := filepath.Join(dir, "tokens.bin")
	must(t, os.WriteFile(text, bytes.Repeat([]byte("\x01\x00\x04\x00\x02\x00\x07\x00\x00\x00"), 300), 0o666))
	_, _, stderr := runCommand(t, "--dir", dir, "--data", text, "--steps", "1", "--set", "train.optimizer.lr=3e4")
	if !strings.Contains(stderr, "\nwarning: train.optimizer.lr is 30000; ") {
		t.Error(stderr)
	}
}

// --version says which planc and which Go made the binary, and for what.
func TestVersionFlag(t *testing.T) {
	code, stdout, stderr := runCommand(t, "--version")
	want := regexp.MustCompile(`^bigram: program \S*\nbuilt by planc \S+ with go1\.\S+ for [a-z]+/[a-z0-9]+(, cgo)?\n$`)
	if code != 0 || !want.MatchString(stdout) || stderr != "" {
		t.Errorf("exit %d: %q, %q", code, stdout, stderr)
	}
}

// With --log json every line is JSON: the progress, the summary, and the error.
func TestLogJSON(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "tokens.bin")
	must(t, os.WriteFile(text, bytes.Repeat([]byte("\x01\x00\x04\x00\x02\x00\x07\x00\x00\x00"), 300), 0o666))
	args := []string{"--log=json", "--dir", dir, "--data", text, "--steps=3"}
	code, stdout, stderr := runCommand(t, args...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var summary struct {
		Msg, Name, Checkpoint string
		Step                  int
		Loss, MFU             *float64
	}
	must(t, json.Unmarshal([]byte(stdout), &summary))
	if summary.Msg != "summary" || summary.Name != "bigram" || summary.Step != 3 || summary.Loss == nil ||
		summary.MFU != nil ||
		summary.Checkpoint != filepath.Join(dir, "checkpoints", "step-00000003") {
		t.Errorf("summary %s", stdout)
	}
	code, _, failed := runCommand(t, append(args, "--resume=7")...)
	if want := `"level":"ERROR","msg":"checkpoint: there is no checkpoint of step 7 in `; code != exit.Input ||
		!strings.Contains(failed, want) {
		t.Errorf("exit %d: %s", code, failed)
	}
	for line := range strings.Lines(stderr + failed) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

// The environment variable of the timeout is checked as the flag is.
func TestTimeoutVariable(t *testing.T) {
	t.Setenv("PLANC_TIMEOUT", "ten\x1b[2J")
	if code, _, stderr := runCommand(t); code != exit.Input ||
		stderr != "bigram: PLANC_TIMEOUT=ten\\u001b[2J: must be a positive duration, such as 90s or 10m\n" {
		t.Errorf("exit %d, %q", code, stderr)
	}
}
