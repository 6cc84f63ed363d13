package runtime

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/planc-dev/planc/runtime/fold"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/visible"
)

// flag is one flag of a training binary.
type flag struct {
	name, arg, help string
	bare            bool // takes no value
	apply           func(c *command, value string) error
}

// command is what the flags of a training binary ask for.
type command struct {
	opts    []Option
	json    bool
	help    bool
	version bool
	export  bool
	threads int // a rank; 0: what there are
	launch  launch.Flags
	within  time.Duration // of joining; 0: the default
	timeout time.Duration // of collectives; 0: not given
}

func (c *command) add(o Option) error {
	c.opts = append(c.opts, o)
	return nil
}

// flags are all flags, in the order of --help.
var flags = []flag{
	{"dir", "D", "folder of metrics.jsonl and checkpoints/ (default runs/NAME)", false,
		func(c *command, v string) error { return c.add(Dir(v)) }},
	{"resume", "auto|never|STEP|DIR", "where to begin (default auto: the newest whole checkpoint)", false,
		func(c *command, v string) error { return c.add(Resume(v)) }},
	{"steps", "N", "the last step, absolute, also on resume", false,
		func(c *command, v string) error { return c.add(Set("train.steps", v)) }},
	{"set", "k=v", "change a setting of the job, such as train.optimizer.lr=1e-4; null: as compiled; may be repeated",
		false, setFlag},
	{"data", "FILE", "train on this file instead of the job's", false, dataFlag},
	{"checkpoint-dir", "D", "folder of the checkpoints (default DIR/checkpoints)", false,
		func(c *command, v string) error { return c.add(CheckpointDir(v)) }},
	{"checkpoint-every", "N", "steps between checkpoints; 0: at the end and on request", false,
		func(c *command, v string) error { return c.add(Set("train.checkpoint.every", v)) }},
	{"log-dir", "D", "folder of metrics.jsonl (default DIR)", false,
		func(c *command, v string) error { return c.add(LogDir(v)) }},
	{"seed", "S", "of parameters, data order, dropout and samples", false,
		func(c *command, v string) error { return c.add(Set("train.seed", v)) }},
	{"threads", "N", "processors a rank may use (default: what there are, shared)", false, threadsFlag},
	{"cpu-isa", "auto|amx|avx512|avx2|portable", "instructions of the CPU's kernels (default auto)", false, isaFlag},
	{"export", "DIR", "train nothing: write the checkpoint that --resume names to this new folder, in Hugging " +
		"Face's layout", false,
		func(c *command, v string) error { c.export = true; return c.add(Export(v)) }},
	{"nnodes", "N", "machines that the program is started on, once on each" + onlyGPUs, false,
		func(c *command, v string) error { c.launch.Nodes = v; return nil }},
	{"node-rank", "R", "which of them this is, from 0 on", false, func(c *command, v string) error {
		c.launch.NodeRank = v
		return nil
	}},
	{"nproc-per-node", "N", "devices of each (default: the program's, shared out)", false,
		func(c *command, v string) error { c.launch.PerNode = v; return nil }},
	{"master-addr", "HOST", "where node 0 is found", false, func(c *command, v string) error {
		c.launch.Addr = v
		return nil
	}},
	{"master-port", "PORT", "and at which port (default 29500)", false, func(c *command, v string) error {
		c.launch.Port = v
		return nil
	}},
	{"join-timeout", "DURATION", "how long processes wait for each other to come (default 10m)", false, joinFlag},
	{"timeout", "DURATION", "how long a collective waits for a rank that does not come (default 10m, or $" +
		timeoutVariable + ")", false,
		func(c *command, v string) error { return c.setTimeout("--timeout ", v) }},
	{"log", "text|json", "progress on stderr and the summary on stdout, for people or for machines (default text)",
		false, logFlag},
	{"version", "", "print which planc built the binary, and for what", true, func(c *command, _ string) error {
		c.version = true
		return nil
	}},
	{"help", "", "print this", true, func(c *command, _ string) error { c.help = true; return nil }},
}

// onlyGPUs is said of --nnodes by programs for CPUs.
const onlyGPUs = "; programs for CPUs take 1 alone, and not the four that follow"

// isas are the values of --cpu-isa.
var isas = []string{"auto", "amx", "avx512", "avx2", "portable"}

func setFlag(c *command, v string) error {
	path, value, ok := strings.Cut(v, "=")
	if !ok {
		return fmt.Errorf("--set %s: write it as --set %s=VALUE", v, v)
	}
	return c.add(Set(path, value))
}

func dataFlag(c *command, v string) error {
	path := v
	if !strings.HasPrefix(v, "goroot:") {
		abs, err := filepath.Abs(v)
		if err != nil {
			return err
		}
		path = abs
	}
	return c.add(func(o *options) {
		o.sets = append(o.sets, setting{"data.train", []File{{Path: path, Weight: 1}}}, setting{dataOnly, nil})
	})
}

// maxThreads bounds --threads: more is a slip of the finger, and would take memory for each.
const maxThreads = 1024

func threadsFlag(c *command, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > maxThreads {
		return fmt.Errorf("--threads %s: it is a count from 1 to %d", v, maxThreads)
	}
	c.threads = n
	return nil
}

func isaFlag(c *command, v string) error {
	if !slices.Contains(isas, v) {
		return fmt.Errorf("--cpu-isa %s: it is one of %s", v, strings.Join(isas, ", "))
	}
	return c.add(func(o *options) { o.isa = v })
}

func joinFlag(c *command, v string) (err error) {
	c.within, err = time.ParseDuration(v)
	if err != nil || c.within <= 0 {
		return fmt.Errorf("--join-timeout %s: write it as 90s or 10m", v)
	}
	return nil
}

// timeoutVariable is the environment's --timeout.
const timeoutVariable = "PLANC_TIMEOUT"

// setTimeout reads the deadline of collectives. name is what stands before it: "--timeout " or "PLANC_TIMEOUT=".
func (c *command) setTimeout(name, v string) (err error) {
	c.timeout, err = time.ParseDuration(v)
	if err != nil || c.timeout <= 0 {
		return fmt.Errorf("%s%s: it is a duration over 0, such as 90s or 10m", name, v)
	}
	return nil
}

// environment reads what the environment says and no flag does.
func (c *command) environment(lookup func(string) (string, bool)) error {
	if v, _ := lookup(timeoutVariable); v != "" && c.timeout == 0 {
		if err := c.setTimeout(timeoutVariable+"=", v); err != nil {
			return &ExitError{ExitInput, err}
		}
	}
	if c.timeout > 0 {
		return c.add(Timeout(c.timeout))
	}
	return nil
}

func logFlag(c *command, v string) error {
	if v != "text" && v != "json" {
		return fmt.Errorf("--log %s: it is text or json", v)
	}
	c.json = v == "json"
	return nil
}

// parse reads the arguments of a training binary. Both --name value and --name=value will do.
func parse(args []string) (*command, error) {
	c := &command{}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, dashes := strings.CutPrefix(arg, "--")
		if arg == "-h" {
			name, dashes = "help", true
		}
		if !dashes && len(arg) > 1 && arg[0] == '-' {
			return nil, exitf(ExitInput, "unknown flag %s; flags have two dashes, and --help lists them", arg)
		}
		if !dashes || name == "" {
			return nil, exitf(ExitInput, "unexpected argument %s; --help lists the flags", arg)
		}
		name, value, given := strings.Cut(name, "=")
		next := value
		if !given && len(args) > 0 {
			next = args[0]
		}
		f, err := findFlag(name, next)
		if err != nil {
			return nil, err
		}
		if !f.bare && !given {
			if len(args) == 0 {
				return nil, exitf(ExitInput, "--%s needs a value: --%s %s", name, name, f.arg)
			}
			value, args = args[0], args[1:]
		}
		if err := f.apply(c, value); err != nil {
			return nil, &ExitError{ExitInput, err}
		}
	}
	return c, nil
}

// findFlag is the flag of a name, which may be written as torchrun lets it: nproc_per_node. The error suggests another
// flag, with the value where that goes.
func findFlag(name, value string) (*flag, error) {
	name = strings.ReplaceAll(name, "_", "-")
	if name == "nodes" {
		name = "nnodes"
	}
	if i := slices.IndexFunc(flags, func(f flag) bool { return f.name == name }); i >= 0 {
		return &flags[i], nil
	}
	var names []string
	for _, f := range flags {
		names = append(names, f.name)
	}
	hint := otherFlag(name, value)
	if hint == "" {
		hint = strings.Replace(didYouMean(name, names), "mean ", "mean --", 1)
	}
	if hint == "" {
		hint = "; --help lists the flags"
	}
	return nil, exitf(ExitInput, "unknown flag --%s%s", name, hint)
}

// usage prints the flags.
func usage(w io.Writer, p *Program) {
	head := fmt.Sprintf("%s: trains %s as planc compiled it%s: %s\n", filepath.Base(os.Args[0]), p.Name, needsText(p),
		p.Plan.Text)
	fmt.Fprintln(w, fold.Lines(head, fold.Columns, fold.Indent))
	const at = 28 // where a flag's help begins
	indent := strings.Repeat(" ", at)
	for _, f := range flags {
		if p.Devices != nil {
			f.help = strings.TrimSuffix(f.help, onlyGPUs)
		}
		left := strings.TrimRight(fmt.Sprintf("  --%s %s", f.name, f.arg), " ")
		if gap := at - fold.Width(left); gap >= 2 {
			left += indent[:gap]
		} else {
			left += "\n" + indent
		}
		fmt.Fprintln(w, left+strings.ReplaceAll(fold.Lines(f.help, fold.Columns-at, 0), "\n", "\n"+indent))
	}
	fmt.Fprint(w, "\n", fold.Lines("Exit codes: 0 all steps done, 1 failed, 2 flags, data or checkpoint wrong, 3 "+
		"this machine or "+
		"launch cannot run the program, 5 stopped by the numerics guard, 75 stopped on request.",
		fold.Columns, 0), "\n")
}

// needsText is what a program for GPUs needs of a machine.
func needsText(p *Program) string {
	switch n := p.mesh().Size(); {
	case p.Devices == nil:
		return ""
	case n == 1:
		return ", for 1 NVIDIA GPU"
	default:
		return fmt.Sprintf(", for %d NVIDIA GPUs", n)
	}
}

// logOption is where the command reports.
func (c *command) logOption(stderr *os.File) Option {
	if c.json {
		return Logger(logger(stderr))
	}
	return text(stderr, isTerminal(stderr))
}

// logger writes JSON lines.
func logger(w io.Writer) *slog.Logger { return slog.New(slog.NewJSONHandler(visible.Writer(w), nil)) }

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
