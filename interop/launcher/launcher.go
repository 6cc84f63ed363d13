// Package launcher holds what the files of all launchers have in common: the number of processes, the name of the run,
// and the command that each process runs.
//
// Launchers start either planc's own binary or the program of another trainer. planc's binary finds its rank in the
// variables of every launcher (docs/cli.md). PyTorch programs need the variables of torchrun.
package launcher

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// codeBadCommand is reported for a command that a launcher cannot start.
const codeBadCommand ir.Code = "BadCommand"

// Run is a run that a launcher starts.
type Run struct {
	Name    string // of letters, digits, dashes, dots and underscores
	Nodes   int
	Devices int // per node
	// HasGPUs is false if the devices are shares of a CPU. planc's programs for CPUs start all their ranks themselves.
	HasGPUs bool
	// IsWhole says that the run uses all devices of its nodes.
	IsWhole bool
	// Cores is the number of cores of a node that belong to the run's devices; 0 if it is not known.
	Cores   int
	Summary string // the plan and the hardware in one line, for a comment

	command []string // the other trainer's program; nil for planc's binary
	python  bool     // command is a Python program: a script, or -m and a module
}

// New returns the run of a target. Its errors are ir.Diags.
func New(t *interop.Target) (*Run, error) {
	nodes, devices := t.Nodes()
	node := t.Hardware.Node
	r := &Run{Name: name(t), Nodes: nodes, Devices: devices, HasGPUs: !t.Hardware.IsCPU(),
		IsWhole: node.FullDevices <= devices, Cores: node.Host.Cores}
	if !r.IsWhole {
		r.Cores = node.Host.Cores * devices / node.FullDevices
	}
	summary := fmt.Sprintf("%s on %s of %d × %s", t.Plan, Count(nodes, "node"), devices, t.Hardware.GPU.Name)
	r.Summary = strings.Join(strings.Fields(summary), " ")
	switch {
	case len(t.Command) == 0 && !isPlancEngine(t):
		return nil, refuse("train.engine", fmt.Sprintf("the plan is one of engine %s, and the launcher starts planc's "+
			"program %s; type: --engine planc", t.Job.Train.Engine, plancBinary))
	case len(t.Command) == 0 && !r.HasGPUs && nodes > 1:
		return nil, refuse("hardware", fmt.Sprintf("planc's programs for CPUs run on one machine, and not on %d; "+
			"type: --nodes 1", nodes))
	case len(t.Command) == 0:
		return r, nil
	}
	return r, r.setCommand(t.Command)
}

// isPlancEngine reports whether a plan was made for planc's own program.
func isPlancEngine(t *interop.Target) bool {
	return t.Job == nil || t.Job.Train.Engine == "" || t.Job.Train.Engine == "planc"
}

// Comments are lines for the top of a launcher's file: the plan, and how the program that it starts is built.
func (r *Run) Comments() []string {
	if !r.IsPlanc() {
		return []string{r.Summary}
	}
	target := "cpu"
	if r.HasGPUs {
		target = "cuda"
	}
	return []string{r.Summary, "planc compile JOB --target " + target + " -o train writes the program ./train"}
}

// BashComments returns Comments as comments of bash and YAML.
func (r *Run) BashComments() string { return "# " + strings.Join(r.Comments(), "\n# ") + "\n" }

// Count returns a number with its noun: "1 node", "2 nodes".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// name returns the job's name with only the characters that every launcher accepts.
func name(t *interop.Target) string {
	var b strings.Builder
	if t.Job != nil {
		for _, r := range t.Job.Name {
			if !isNameRune(r) {
				r = '-'
			}
			b.WriteRune(r)
		}
	}
	text := strings.Trim(b.String(), "-._")
	if text == "" {
		return "train"
	}
	return text
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._", r)
}

// launchers are programs that start processes themselves.
var launchers = []string{"torchrun", "srun", "sbatch", "mpirun", "mpiexec", "deepspeed", "accelerate"}

// setCommand sets the command of another trainer. It removes the name of the Python interpreter, which launchers add.
func (r *Run) setCommand(words []string) error {
	program := path.Base(words[0])
	if slices.Contains(launchers, program) {
		return refuse(commandFlag, program+" starts processes itself, and the command must be the program that each "+
			"process runs: train.py --option")
	}
	r.command = words
	if isPython(program) {
		r.command, r.python = words[1:], true
		for len(r.command) > 0 && isInterpreterOption(r.command[0]) {
			r.command = r.command[1:]
		}
		if len(r.command) == 0 {
			return refuse(commandFlag, fmt.Sprintf("%s has no script; type: python train.py --option",
				strings.Join(words, " ")))
		}
	}
	r.python = r.python || strings.HasSuffix(program, ".py")
	return nil
}

// isPython reports whether a program is Python: python3.12.
func isPython(program string) bool {
	version, ok := strings.CutPrefix(program, "python")
	return ok && strings.Trim(version, "0123456789.") == ""
}

// isInterpreterOption reports whether a word is an option of the Python interpreter without a value. "-m" is not,
// because torchrun has it too.
func isInterpreterOption(word string) bool {
	return slices.Contains([]string{"-u", "-O", "-OO", "-B", "-E", "-s", "-S", "-I", "-q", "-v"}, word)
}

// commandFlag is where a command comes from.
const commandFlag = "--command"

func refuse(file, msg string) error {
	return ir.Diags{{Pos: ir.Pos{File: file}, Code: codeBadCommand, Msg: msg}}
}

// IsPlanc reports whether the run starts planc's own binary.
func (r *Run) IsPlanc() bool { return r.command == nil }

// StartsAlone reports whether one process starts all ranks of the run: planc's programs for CPUs.
func (r *Run) StartsAlone() bool { return r.IsPlanc() && !r.HasGPUs }

// plancBinary is what planc compile writes.
const plancBinary = "./train"

// Words returns the command of a process whose environment has its rank.
func (r *Run) Words() []string {
	switch {
	case r.IsPlanc():
		return []string{plancBinary}
	case r.python:
		return append([]string{"python"}, r.command...)
	}
	return r.command
}

// Torchrun returns the command by which torchrun starts the processes of a node.
func (r *Run) Torchrun(options ...string) []string {
	words := append([]string{"torchrun"}, options...)
	switch {
	case r.IsPlanc():
		return append(words, "--no-python", plancBinary)
	case r.python:
		return append(words, r.command...)
	}
	return append(append(words, "--no-python"), r.command...)
}

// TorchrunLine returns the command of Torchrun quoted for bash. raw is options that bash expands.
func (r *Run) TorchrunLine(raw string, options ...string) string {
	words := r.Torchrun(options...)
	if raw == "" {
		return Bash(words...)
	}
	return "torchrun " + raw + " " + Bash(words[1:]...)
}

// CheckProcesses refuses planc's programs for CPUs, for launchers whose purpose is to start several processes.
func (r *Run) CheckProcesses(launcher string) error {
	if !r.StartsAlone() {
		return nil
	}
	return refuse(launcher, "planc's program for CPUs starts all its ranks in one process; run it without a launcher: "+
		plancBinary)
}

// Bash quotes words for bash. A word of plain characters stays as it is.
func Bash(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !isNameRune(r) && !strings.ContainsRune("/=:,@%+", r)
		}) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
