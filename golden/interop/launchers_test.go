package interop_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/kubernetes"
	"github.com/planc-dev/planc/interop/mpirun"
	"github.com/planc-dev/planc/interop/slurm"
	"github.com/planc-dev/planc/interop/torchrun"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/runtime/launch"
)

// launched returns a target on nodes of GPUs, whose command is another trainer's; none for planc's binary.
func launched(nodes, devices int, command ...string) *interop.Target {
	p := ir.SerialPlan(12, 1, ir.Precision{})
	p.DP = nodes * devices
	return &interop.Target{Plan: p, Job: &spec.Job{Name: "Llama 3.1/8B"}, Command: command,
		Hardware: &costmodel.Cluster{Nodes: nodes, GPU: costmodel.GPU{Name: "H100-SXM-80GB", Arch: "sm_90a"},
			Node: costmodel.Node{Devices: devices, FullDevices: 8, Host: costmodel.Host{Cores: 96}}}}
}

// runScript runs a script in bash. The programs of launchers are replaced by ones that print their names and arguments.
// It returns these lists, one for each call.
func runScript(t *testing.T, script []byte, env ...string) (calls [][]string, code int) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	printer := "#!" + bash + "\nprintf '%s\\0' \"${0##*/}\" \"$@\" $'\\n' >> \"$CALLS\"\n"
	write("torchrun", printer+"exit 0\n")
	write("mpirun", printer+"exit 0\n")
	write("scontrol", printer+"[ \"$1\" != show ] || echo node7\n")
	write("srun", printer+"exit ${SRUN_CODE:-0}\n")
	write("hostfile", "# nodes\n\nnode3 slots=8\nnode4 slots=8\n")
	write("script", string(script))
	cmd := exec.Command(bash, "script")
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"),
		"CALLS=" + filepath.Join(dir, "calls")}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if cmd.ProcessState.ExitCode() == 127 || strings.Contains(string(out), "syntax error") {
		t.Fatalf("%s\n%s", out, script)
	}
	text, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for call := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n\x00"), "\n\x00") {
		calls = append(calls, strings.Split(strings.TrimSuffix(call, "\x00"), "\x00"))
	}
	return calls, cmd.ProcessState.ExitCode()
}

// written returns a launcher's file.
func written(t *testing.T, f *interop.Format, target *interop.Target) []byte {
	t.Helper()
	data, err := f.Write(target)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The file of each launcher is the recorded one, for planc's binary and for another trainer's program.
func TestLaunchersFilesAreRecorded(t *testing.T) {
	for _, f := range []*interop.Format{&slurm.Format, &torchrun.Format, &mpirun.Format, &kubernetes.Job,
		&kubernetes.JobSet, &kubernetes.TrainJob} {
		for name, target := range map[string]*interop.Target{"planc": launched(2, 8),
			"trainer": launched(2, 8, "python", "-u", "pretrain.py", "--name", "my run")} {
			file := filepath.Join("testdata", "launchers", strings.ReplaceAll(f.Name, ":", "-")+"-"+name+f.Ext)
			got := written(t, f, target)
			if harness.Updating() {
				if err := os.WriteFile(file, got, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (go test ./golden/interop -run TestLaunchersFiles -update): %s", file, diff)
			}
		}
	}
}

// Commands that a launcher cannot start are refused, with what to type.
func TestLaunchersRefuseCommands(t *testing.T) {
	onCPU := launched(1, 8)
	onCPU.Hardware.GPU.Arch = "cpu"
	onCPUs := launched(2, 8)
	onCPUs.Hardware.GPU.Arch = "cpu"
	ofMegatron := launched(2, 8)
	ofMegatron.Job.Train.Engine = "megatron"
	for _, c := range []struct {
		f      *interop.Format
		target *interop.Target
		want   string
	}{
		{&kubernetes.Job, ofMegatron, "train.engine: the plan is one of engine megatron, and the launcher starts " +
			"planc's program ./train; type: --engine planc [BadCommand]"},
		{&slurm.Format, launched(2, 8, "/opt/bin/torchrun", "train.py"), "--command: torchrun starts processes " +
			"itself, and the command must be the program that each process runs: train.py --option [BadCommand]"},
		{&kubernetes.Job, launched(2, 8, "python3", "-u"), "--command: python3 -u has no script; type: python " +
			"train.py --option [BadCommand]"},
		{&torchrun.Format, onCPU, "torchrun: planc's program for CPUs starts all its ranks in one process; run it " +
			"without a launcher: ./train [BadCommand]"},
		{&slurm.Format, onCPUs, "hardware: planc's programs for CPUs run on one machine, and not on 2; type: " +
			"--nodes 1 [BadCommand]"},
	} {
		if _, err := c.f.Write(c.target); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", c.f.Name, err, c.want)
		}
	}
}

// The words of a command reach the trainer as they are, through bash and each launcher.
func TestScriptsQuoteCommands(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 2))
	alphabet := []rune("ab-=/ '\"\\$`!*?[]{}()<>|&;#~%\té…")
	for range 12 {
		command := []string{pick(r, "train.py", "./trainer", "dir/x.py")}
		for range r.IntN(5) {
			var b strings.Builder
			for range r.IntN(9) {
				b.WriteRune(alphabet[r.IntN(len(alphabet))])
			}
			command = append(command, b.String())
		}
		target := launched(pick(r, 1, 2), 8, command...)
		for _, f := range []*interop.Format{&slurm.Format, &torchrun.Format, &mpirun.Format} {
			calls, _ := runScript(t, written(t, f, target), "SLURM_JOB_ID=77", "SLURM_JOB_NODELIST=n[7-8]",
				"SLURM_CPUS_ON_NODE=96", "MASTER_ADDR=n7", "HOSTFILE=hostfile")
			last := calls[len(calls)-1]
			got := last[len(last)-len(command):]
			if diff := cmp.Diff(command, got); diff != "" {
				t.Errorf("%s: %s", f.Name, diff)
			}
		}
	}
}

// Every process that a launcher's file starts finds its ranks, and together they are all ranks of the program.
func TestLaunchersStartAllRanks(t *testing.T) {
	for _, nodes := range []int{1, 2, 5} {
		const devices = 8
		target := launched(nodes, devices)
		for _, f := range []*interop.Format{&slurm.Format, &torchrun.Format, &mpirun.Format} {
			calls, _ := runScript(t, written(t, f, target), "MASTER_ADDR=n7", "HOSTFILE=hostfile",
				"SLURM_CPUS_ON_NODE=96")
			call := calls[0]
			if call[len(call)-1] != "./train" {
				t.Fatalf("%s starts %q", f.Name, call)
			}
			var got []int
			for _, env := range environments(f.Name, call, nodes) {
				got = append(got, ranksOf(t, launch.Flags{}, nodes*devices, env)...)
			}
			checkRanks(t, f.Name, got, nodes*devices)
		}
	}
}

// ranksOf returns the ranks that planc's binary runs with some flags and variables.
func ranksOf(t *testing.T, flags launch.Flags, ranks int, env map[string]string) (out []int) {
	t.Helper()
	l, err := launch.Resolve(flags, ranks, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatalf("%v: %v", env, err)
	}
	for i := range l.Count {
		out = append(out, l.First+i)
	}
	return out
}

func checkRanks(t *testing.T, name string, got []int, ranks int) {
	t.Helper()
	slices.Sort(got)
	for i := range ranks {
		if len(got) != ranks || got[i] != i {
			t.Errorf("%s: the processes run ranks %v of %d", name, got, ranks)
			return
		}
	}
}

// environments returns the environment of each process of a launcher's call, as the launcher sets it.
func environments(launcher string, call []string, nodes int) (out []map[string]string) {
	value := func(prefix, fallback string) string {
		for i, word := range call {
			if v, ok := strings.CutPrefix(word, prefix+"="); ok {
				return v
			}
			if word == prefix {
				return call[i+1]
			}
		}
		return fallback
	}
	switch launcher {
	case "slurm":
		for i := range nodes {
			out = append(out, map[string]string{"SLURM_STEP_NUM_TASKS": fmt.Sprint(nodes), "SLURM_LOCALID": "0",
				"SLURM_PROCID": fmt.Sprint(i), "SLURM_STEP_TASKS_PER_NODE": fmt.Sprintf("1(x%d)", nodes),
				"SLURM_STEP_NODELIST": "n[1-9]", "SLURM_JOB_ID": "77"})
		}
		return out
	case "torchrun":
		var each, n int
		fmt.Sscan(value("--nproc-per-node", ""), &each)
		fmt.Sscan(value("--nnodes", "1"), &n)
		for i := range n * each {
			out = append(out, map[string]string{"WORLD_SIZE": fmt.Sprint(n * each), "RANK": fmt.Sprint(i),
				"LOCAL_RANK": fmt.Sprint(i % each), "LOCAL_WORLD_SIZE": fmt.Sprint(each), "MASTER_ADDR": "n1",
				"MASTER_PORT": "29400"})
		}
		return out
	}
	var n, each int
	fmt.Sscan(value("-np", ""), &n)
	fmt.Sscanf(value("--map-by", ""), "ppr:%d:node", &each)
	for i := range n {
		out = append(out, map[string]string{"OMPI_COMM_WORLD_SIZE": fmt.Sprint(n),
			"OMPI_COMM_WORLD_RANK": fmt.Sprint(i), "OMPI_COMM_WORLD_LOCAL_RANK": fmt.Sprint(i % each),
			"OMPI_COMM_WORLD_LOCAL_SIZE": fmt.Sprint(each), "MASTER_ADDR": "n3", "MASTER_PORT": "29500"})
	}
	return out
}

// A SLURM job continues after a stop with a checkpoint, a few times after a failure, and ends otherwise.
func TestSlurmActsOnExitCodes(t *testing.T) {
	script := written(t, &slurm.Format, launched(2, 8))
	for _, c := range []struct {
		code, restarts string
		requeues       bool
	}{{"0", "0", false}, {"1", "0", true}, {"1", "3", false}, {"2", "0", false}, {"3", "0", false},
		{"5", "0", false}, {"75", "0", true}, {"75", "40", true}} {
		calls, code := runScript(t, script, "SRUN_CODE="+c.code, "SLURM_RESTART_COUNT="+c.restarts,
			"SLURM_JOB_ID=77", "SLURM_CPUS_ON_NODE=96")
		want := [][]string{{"srun", "--cpus-per-task=96", "--cpu-bind=none", "./train"}}
		if c.requeues {
			want = append(want, []string{"scontrol", "requeue", "77"})
		}
		if diff := cmp.Diff(want, calls); diff != "" || fmt.Sprint(code) != c.code {
			t.Errorf("exit code %s, %s restarts: %d %s", c.code, c.restarts, code, diff)
		}
	}
}

// The pods of each manifest run all ranks. $(JOB_COMPLETION_INDEX) is replaced as Kubernetes does.
func TestPodsStartAllRanks(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		const devices = 8
		for _, f := range []*interop.Format{&kubernetes.Job, &kubernetes.JobSet} {
			words := podCommand(t, written(t, f, launched(nodes, devices)))
			if words[0] != "./train" {
				t.Errorf("%s starts %q", f.Name, words)
			}
			var got []int
			for i := range nodes {
				index := fmt.Sprint(i)
				var flags launch.Flags
				for _, w := range words[1:] {
					name, value, _ := strings.Cut(strings.ReplaceAll(w, "$(JOB_COMPLETION_INDEX)", index), "=")
					*map[string]*string{"--nnodes": &flags.Nodes, "--node-rank": &flags.NodeRank,
						"--nproc-per-node": &flags.PerNode, "--master-addr": &flags.Addr,
						"--master-port": &flags.Port}[name] = value
				}
				got = append(got, ranksOf(t, flags, nodes*devices, map[string]string{"JOB_COMPLETION_INDEX": index})...)
			}
			checkRanks(t, f.Name, got, nodes*devices)
		}
	}
}

// podCommand returns the command and the arguments of a manifest's container.
func podCommand(t *testing.T, manifest []byte) (words []string) {
	t.Helper()
	documents := strings.Split(string(manifest), "\n---\n")
	doc, diags := strict.Parse("pods.yaml", []byte(documents[len(documents)-1]))
	if len(diags) > 0 {
		t.Fatalf("%v\n%s", diags, manifest)
	}
	var find func(n *strict.Node)
	find = func(n *strict.Node) {
		for _, field := range n.Fields {
			if field.Key == "command" || field.Key == "args" {
				for _, item := range field.Value.Items {
					words = append(words, item.Text)
				}
			}
			find(field.Value)
		}
		for _, item := range n.Items {
			find(item)
		}
	}
	find(doc.Root)
	return words
}
