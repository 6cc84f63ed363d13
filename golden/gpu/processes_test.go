package gpu_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/planc-dev/planc/cuda/emulated"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/golden/internal/harness"
)

// processesJob has dropout and validation, and no rounding that could hide a fault.
const processesJob = `model: {model_type: gpt2, n_layer: 2, n_embd: 32, n_head: 2, vocab_size: 256, n_positions: 16, resid_pdrop: 0.1}
data: {train: [text.txt], valid: 0.1}
train: {seq_len: 16, global_batch: 8, steps: 4, precision: f32, eval: {every: 2, batches: 1, sample: "what"}, checkpoint: {every: 2}}
plan: {dp: 2, tp: 2, zero: 1}
cluster: {node: dgx-h100, devices: 4}
`

// processes is a launch: the commands of its processes and their outputs.
type processes struct {
	*gpuBinary
	cmds []*exec.Cmd
	out  []bytes.Buffer
	errs []error
}

// start starts n processes of the binary; env and args are those of process i.
func (b *gpuBinary) start(n int, env func(i int) []string, args func(i int) []string) *processes {
	b.t.Helper()
	p := &processes{gpuBinary: b, out: make([]bytes.Buffer, n), errs: make([]error, n)}
	far := b.t.TempDir()
	for i := range n {
		cmd := exec.CommandContext(b.t.Context(), "./there", append([]string{"--join-timeout=60s"}, args(i)...)...)
		cmd.Dir, cmd.Env = b.dir, append(append(append(os.Environ(), b.env...), "PLANC_EMULATED_FAR="+far), env(i)...)
		cmd.Stdout, cmd.Stderr = &p.out[i], &p.out[i]
		p.cmds = append(p.cmds, cmd)
		if err := cmd.Start(); err != nil {
			b.t.Fatal(err)
		}
	}
	return p
}

func (p *processes) wait() {
	var all sync.WaitGroup
	for i, cmd := range p.cmds {
		all.Go(func() { p.errs[i] = cmd.Wait() })
	}
	all.Wait()
}

// freePort returns a port on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// A binary that is started as several processes, by flags or by a launcher's variables, trains to the same results as
// a single process, resumes checkpoints of other launches, and ends everywhere when one process ends.
func TestProcessesOfGPUs(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	machine, err := emulated.Install(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &gpuBinary{t: t, dir: t.TempDir(), planc: harness.Planc(t), env: machine.Env()}
	b.write("job.yaml", processesJob)
	b.write("text.txt", strings.Repeat("what is said again and again is learned soon. ", 200))
	b.must(b.planc, "compile", "job.yaml", "-o", "there", "--target", "cuda")
	b.must("./there", "--dir", "run of there")
	want, _ := b.lossesIn(filepath.Join(b.dir, "run of there"))
	if len(want) != 4 {
		t.Fatalf("losses %v", want)
	}
	t.Run("nodes", func(t *testing.T) { b.on(t).nodes(want) })
	t.Run("torchrun", func(t *testing.T) { b.on(t).torchrun(want) })
	t.Run("resume", func(t *testing.T) { b.on(t).resume(want) })
	t.Run("saves", func(t *testing.T) { b.on(t).saves() })
	t.Run("killed", func(t *testing.T) { b.on(t).killed() })
	t.Run("broken", func(t *testing.T) { b.on(t).broken() })
	t.Run("hung", func(t *testing.T) { b.on(t).hung() })
	t.Run("opening", func(t *testing.T) { b.on(t).opening() })
	t.Run("strangers", func(t *testing.T) { b.on(t).strangers(want) })
	t.Run("stopped", func(t *testing.T) { b.on(t).stopped() })
	t.Run("differ", func(t *testing.T) { b.on(t).differ() })
}

// on returns the folder for another test.
func (b *gpuBinary) on(t *testing.T) *gpuBinary {
	c := *b
	c.t = t
	return &c
}

// nodeFlags returns the flags that start a process on each of two nodes.
func (b *gpuBinary) nodeFlags(dir string, more ...string) func(i int) []string {
	port := freePort(b.t)
	return func(i int) []string {
		return append([]string{"--dir", fmt.Sprint(dir, i), "--nnodes=2", "--node-rank", fmt.Sprint(i),
			"--master-addr=127.0.0.1", "--master-port", port}, more...)
	}
}

// visible returns the environment that gives process i of two its own devices.
func visible(i int) []string {
	return []string{"PLANC_EMULATED_GPUS=2", fmt.Sprint("PLANC_EMULATED_FIRST=", 2*i)}
}

func (p *processes) good(want []float64, dir string) {
	p.t.Helper()
	for i, err := range p.errs {
		if err != nil {
			p.t.Errorf("process %d: %v\n%s", i, err, p.out[i].String())
		}
	}
	got, _ := p.lossesIn(dir)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.t.Errorf("losses %v, alone %v", got, want)
	}
	if p.t.Failed() {
		p.t.Logf("%s", p.out[0].String())
	}
}

// With one process per node, only the first writes, and its checkpoint equals that of a single process.
func (b *gpuBinary) nodes(want []float64) {
	dir := filepath.Join(b.dir, "nodes")
	p := b.start(2, visible, b.nodeFlags(dir))
	p.wait()
	p.good(want, dir+"0")
	if entries, err := os.ReadDir(dir + "1"); err == nil {
		b.t.Errorf("the second process wrote %v", entries)
	}
	for line := range strings.Lines(p.out[1].String()) { // it may come first, and prints nothing else
		if !strings.Contains(line, "process 1 cannot reach process 0 at ") &&
			!strings.Contains(line, "process 1 has reached process 0 at ") {
			b.t.Errorf("the second process prints %s", line)
		}
	}
	for _, name := range []string{"model.safetensors", "optimizer.safetensors"} {
		file := filepath.Join("checkpoints", "step-00000004", name)
		here, err := os.ReadFile(filepath.Join(dir+"0", file))
		if err != nil {
			b.t.Fatal(err)
		}
		if alone, err := os.ReadFile(filepath.Join(b.dir, "run of there", file)); err != nil ||
			!bytes.Equal(here, alone) {
			b.t.Errorf("%s is not that of a run alone (%v)", name, err)
		}
	}
	if out := p.out[0].String(); !strings.Contains(out, "2 processes, each with 2 × Emulated GPU") ||
		!strings.Contains(out, "sample  what") {
		b.t.Errorf("the first process prints %s", out)
	}
}

// torchrun starts one process per rank, and its own store uses the port.
func (b *gpuBinary) torchrun(want []float64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	defer l.Close()
	dir, port := filepath.Join(b.dir, "torchrun"), l.Addr().(*net.TCPAddr).Port
	p := b.start(4, func(i int) []string {
		return strings.Fields(fmt.Sprintf("RANK=%d LOCAL_RANK=%d WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 "+
			"MASTER_ADDR=127.0.0.1 MASTER_PORT=%d "+
			"TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0", i, i, port))
	}, func(int) []string { return []string{"--dir", dir} })
	p.wait()
	p.good(want, dir)
}

// resume continues a run of one process with two, and the reverse.
func (b *gpuBinary) resume(want []float64) {
	alone := filepath.Join(b.dir, "alone")
	b.must("./there", "--dir", alone, "--set", "train.steps=2", "--set", "train.eval.sample=null")
	p := b.start(2, visible, b.nodeFlags(filepath.Join(b.dir, "both"), "--resume", filepath.Join(alone, "checkpoints",
		"step-00000002")))
	p.wait()
	p.good(want[2:], filepath.Join(b.dir, "both0"))
	dir := filepath.Join(b.dir, "first")
	p = b.start(2, visible, b.nodeFlags(dir, "--steps=2"))
	p.wait()
	b.must("./there", "--dir", dir+"0")
	p.good(want, dir+"0")
}

// trained waits until a run has done a step.
func (p *processes) trained(dir string) {
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if text, _ := os.ReadFile(filepath.Join(dir, "metrics.jsonl")); bytes.Contains(text, []byte(`"loss"`)) {
			return
		}
		if p.cmds[0].Process.Signal(syscall.Signal(0)) != nil {
			break
		}
	}
	p.t.Fatalf("no step is done: %s", p.out[0].String())
}

// killed kills one process. The other ends too, and names the killed one.
func (b *gpuBinary) killed() {
	dir := filepath.Join(b.dir, "killed")
	p := b.start(2, visible, b.nodeFlags(dir, "--steps=1000000"))
	p.trained(dir + "0")
	_ = p.cmds[1].Process.Kill()
	begin := time.Now()
	p.wait()
	if out := p.out[0].String(); p.cmds[0].ProcessState.ExitCode() != 1 ||
		!strings.Contains(out, "the process of ranks 2 to 3 on ") ||
		!strings.Contains(out, "has ended without a message") {
		b.t.Errorf("exit %d: %s", p.cmds[0].ProcessState.ExitCode(), out)
	}
	if took := time.Since(begin); took > 30*time.Second {
		b.t.Errorf("the other process ended after %v", took)
	}
}

// saves saves after each step, while training continues. The checkpoints are those of a process alone that saves
// between steps. If a process is killed, those that were committed stay, and the run continues from the newest.
func (b *gpuBinary) saves() {
	alone, dir := filepath.Join(b.dir, "saves alone"), filepath.Join(b.dir, "saves")
	const noSample = "train.eval.sample=null" // which would take most of the time
	b.must("./there", "--dir", alone, "--checkpoint-every=1", "--set", "train.checkpoint.async=false", "--set",
		noSample)
	p := b.start(2, visible, b.nodeFlags(dir, "--checkpoint-every=1", "--set", noSample))
	p.wait()
	files, _ := filepath.Glob(filepath.Join(alone, "checkpoints", "step-*", "*.safetensors"))
	if len(files) != 8 {
		b.t.Errorf("%d files: %s", len(files), p.out[0].String())
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		got, err2 := os.ReadFile(dir + "0" + strings.TrimPrefix(file, alone))
		if err != nil || err2 != nil || !bytes.Equal(got, want) {
			b.t.Errorf("%s differs from that of a process alone (%v, %v)", file, err, err2)
		}
	}
	for killed := range 2 {
		dir := filepath.Join(b.dir, fmt.Sprint("saves killed", killed, " "))
		p := b.start(2, visible, b.nodeFlags(dir, "--steps=1000000", "--checkpoint-every=1"))
		p.trained(dir + "0")
		time.Sleep(200 * time.Millisecond)
		_ = p.cmds[killed].Process.Kill()
		p.wait()
		b.must(b.planc, "checkpoint", "verify", dir+"0")
		steps, _ := filepath.Glob(filepath.Join(dir+"0", "checkpoints", "step-*"))
		if len(steps) == 0 {
			b.t.Fatalf("process %d is killed: no checkpoint: %s", killed, p.out[0].String())
		}
		newest, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(steps[len(steps)-1]), "step-"))
		if err != nil {
			b.t.Fatal(err)
		}
		p = b.start(2, visible, b.nodeFlags(dir, "--steps", fmt.Sprint(newest+1), "--set", noSample))
		p.wait()
		want := fmt.Sprintf("resume: step %d of %d, ", newest, newest+1)
		if out := p.out[0].String(); p.errs[0] != nil || p.errs[1] != nil || !strings.Contains(out, want) {
			b.t.Errorf("process %d is killed: %v: no %q in %s", killed, p.errs, want, out)
		}
	}
}

// broken breaks the network of one process. NCCL reports it, and all processes end and name the rank, the group and
// the call.
func (b *gpuBinary) broken() {
	dir := filepath.Join(b.dir, "broken")
	p := b.start(2, func(i int) []string {
		if i == 0 {
			return visible(i)
		}
		return append(visible(i), "PLANC_EMULATED_BREAK=200")
	}, b.nodeFlags(dir, "--steps=1000000"))
	p.wait()
	for i, cmd := range p.cmds {
		out := p.out[i].String()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out, "unhandled system error") ||
			!strings.Contains(out, " of ranks [") || !strings.Contains(out, "last call: nccl") {
			b.t.Errorf("process %d: exit %d: %s", i, cmd.ProcessState.ExitCode(), out)
		}
	}
	if out := p.out[0].String(); !strings.Contains(out, "the process of ranks 2 to 3 on ") {
		b.t.Errorf("the first process prints %s", out)
	}
}

// hung makes a collective hang without an error of any library, while all processes live. The deadline ends the run
// and reports where.
func (b *gpuBinary) hung() {
	dir := filepath.Join(b.dir, "hung")
	p := b.start(2, func(i int) []string {
		if i == 0 {
			return visible(i)
		}
		return append(visible(i), "PLANC_EMULATED_HANG=200", "PLANC_TIMEOUT=2s")
	}, b.nodeFlags(dir, "--steps=1000000"))
	begin := time.Now()
	p.wait()
	for i, cmd := range p.cmds {
		out := p.out[i].String()
		if cmd.ProcessState.ExitCode() != 1 ||
			!strings.Contains(out, "a collective waits for a missing rank, or a GPU hangs. The deadline is the "+
				"timeout (--timeout or PLANC_TIMEOUT, 2s)") ||
			!strings.Contains(out, "last call: nccl") {
			b.t.Errorf("process %d: exit %d: %s", i, cmd.ProcessState.ExitCode(), out)
		}
	}
	if took := time.Since(begin); took > 2*time.Minute {
		b.t.Errorf("the run ended after %v", took)
	}
}

// opening kills a process while devices are opened, at several moments. The other one must not report an error of its
// own machine.
func (b *gpuBinary) opening() {
	for i := range 8 {
		p := b.start(2, visible, b.nodeFlags(filepath.Join(b.dir, fmt.Sprint("opening", i)), "--steps=1000000"))
		time.Sleep(time.Duration(40+60*i) * time.Millisecond)
		_ = p.cmds[1].Process.Kill()
		// the killed process may not have connected at all
		enough := time.AfterFunc(20*time.Second, func() { _ = p.cmds[0].Process.Kill() })
		p.wait()
		enough.Stop()
		if code := p.cmds[0].ProcessState.ExitCode(); code != 1 && code != -1 {
			b.t.Errorf("killed after %d ms: the other process's exit is %d: %s", 40+60*i, code, p.out[0].String())
		}
	}
}

// strangers connect before the launch's own process, one of them with a valid-looking hello. The run has the same
// results as without them. A process that does not find process 0 reports it, and so does one that may open too few
// files.
func (b *gpuBinary) strangers(want []float64) {
	dir, port := filepath.Join(b.dir, "strangers"), freePort(b.t)
	flags := func(i int) []string {
		return []string{"--dir", fmt.Sprint(dir, i), "--nnodes=2", "--node-rank", fmt.Sprint(i),
			"--master-addr=127.0.0.1", "--master-port", port}
	}
	p := b.start(2, visible, func(i int) []string {
		if i == 1 { // after the strangers
			b.stranger("127.0.0.1:"+port,
				`{"Process":1,"Processes":2,"Ranks":4,"First":2,"Count":0,"Program":"guessed\u001b[2J"}`)
			b.stranger("127.0.0.1:"+port, `{"Process":-1,"Count":-1,"Host":"\u001b[2J"}`)
			b.stranger("127.0.0.1:"+port, `{"Process":1,"Processes":2,"Ranks":4,"First":2,"Count":2,"Host":"h1"}`)
		}
		return flags(i)
	})
	p.wait()
	p.good(want, dir+"0")
	if out := p.out[0].String(); strings.Count(out, "process 0 has refused a caller from 127.0.0.1:") != 3 ||
		strings.Contains(out, "\x1b") {
		b.t.Errorf("the first process prints %q", out)
	}
	lost := b.start(1, visible, func(int) []string {
		return []string{"--nnodes=2", "--node-rank=1", "--master-addr=no-such.invalid", "--join-timeout=1s"}
	})
	lost.wait()
	if out := lost.out[0].String(); lost.cmds[0].ProcessState.ExitCode() != 1 ||
		!strings.HasPrefix(out, "job: process 1 cannot reach process 0 at no-such.invalid:29500 yet: no-such.invalid "+
			"cannot be resolved (") {
		b.t.Errorf("exit %d: %s", lost.cmds[0].ProcessState.ExitCode(), out)
	}
	b.env = append(b.env[:len(b.env):len(b.env)], "JOB_COMPLETION_INDEX=1")
	pod := b.start(1, visible, func(int) []string { return nil })
	pod.wait()
	if want := "job: JOB_COMPLETION_INDEX=1 (a Kubernetes Indexed Job) says that this process is one of several, but " +
		"not how many there are and where process 0 runs: " +
		"add --nnodes N --node-rank $JOB_COMPLETION_INDEX --master-addr HOST, or --nnodes 1 if this process is the " +
		"only one\n"; pod.cmds[0].ProcessState.ExitCode() != 3 || pod.out[0].String() != want {
		b.t.Errorf("exit %d: %s", pod.cmds[0].ProcessState.ExitCode(), pod.out[0].String())
	}
	few := exec.Command("sh", "-c", "ulimit -n 30 && exec ./there "+strings.Join(flags(0), " "))
	few.Dir, few.Env = b.dir, append(os.Environ(), b.env...)
	out, _ := few.CombinedOutput()
	if few.ProcessState.ExitCode() != 3 ||
		!strings.Contains(string(out), "this process may open 30 files and connections, and a launch of 2 processes "+
			"needs about ") {
		b.t.Errorf("exit %d: %s", few.ProcessState.ExitCode(), out)
	}
}

// stranger sends a hello to process 0 once it listens, and reads the answer.
func (b *gpuBinary) stranger(addr, hello string) {
	b.t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err != nil && time.Since(begin) < 30*time.Second {
			continue
		}
		if err != nil {
			b.t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		head := binary.LittleEndian.AppendUint64([]byte("planc meets 4\n0123456789abcdefa"), uint64(len(hello)))
		_, _ = c.Write(append(head, hello...))
		answer, _ := io.ReadAll(c)
		if !bytes.Contains(answer, []byte("this process runs another program than process 0")) {
			b.t.Errorf("a stranger receives %q", answer)
		}
		return
	}
}

// stopped asks one process to stop. All stop after the same step, with a checkpoint.
func (b *gpuBinary) stopped() {
	dir := filepath.Join(b.dir, "stopped")
	p := b.start(2, visible, b.nodeFlags(dir, "--steps=1000000"))
	p.trained(dir + "0")
	_ = p.cmds[1].Process.Signal(syscall.SIGTERM)
	p.wait()
	for i, cmd := range p.cmds {
		if code := cmd.ProcessState.ExitCode(); code != 75 {
			b.t.Errorf("process %d: exit %d: %s", i, code, p.out[i].String())
		}
	}
	if out := p.out[0].String(); !strings.Contains(out, "stopped on request after step") ||
		!strings.Contains(out, "checkpoints/step-") {
		b.t.Errorf("the first process prints %s", out)
	}
}

// differ starts processes whose settings differ.
func (b *gpuBinary) differ() {
	port := freePort(b.t)
	flags := func(i int) []string {
		return []string{"--nnodes=2", "--node-rank", fmt.Sprint(i), "--master-addr=127.0.0.1", "--master-port", port,
			"--join-timeout=10s"}
	}
	p := b.start(2, visible, func(i int) []string { return append(flags(i), "--seed", fmt.Sprint(i)) })
	p.wait()
	for i, cmd := range p.cmds {
		if out := p.out[i].String(); cmd.ProcessState.ExitCode() != 3 ||
			!strings.Contains(out, "was started with other settings: train.seed=1, but here train.seed=0") {
			b.t.Errorf("process %d: exit %d: %s", i, cmd.ProcessState.ExitCode(), out)
		}
	}
	p = b.start(2, func(int) []string { return nil }, b.nodeFlags(filepath.Join(b.dir, "same")))
	p.wait()
	for i, cmd := range p.cmds {
		if out := p.out[i].String(); cmd.ProcessState.ExitCode() != 3 ||
			!strings.Contains(out, "processes 0 and 1 both use GPU 0000:01:00.0 of ") {
			b.t.Errorf("process %d: exit %d: %s", i, cmd.ProcessState.ExitCode(), out)
		}
	}
	b.write("other.txt", strings.Repeat("something else is learned sooner than it is said. ", 200))
	p = b.start(2, visible, func(i int) []string {
		if i == 0 {
			return flags(i)
		}
		return append(flags(i), "--data=other.txt")
	})
	p.wait()
	for i, cmd := range p.cmds {
		out := p.out[i].String()
		if cmd.ProcessState.ExitCode() != 2 ||
			!strings.Contains(out, "processes train on different data: process 0 on ") ||
			!strings.Contains(out, "other.txt") ||
			!strings.Contains(out, "give each the same --data, or copy the files again") {
			b.t.Errorf("process %d: exit %d: %s", i, cmd.ProcessState.ExitCode(), out)
		}
	}
}
