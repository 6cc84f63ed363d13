package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/fold"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/settings"
	"github.com/planc-dev/planc/runtime/tensors"
	"github.com/planc-dev/planc/runtime/visible"
)

// flag is one flag of a training binary.
type flag struct {
	name, arg, help string
	bare            bool // takes no value
	apply           func(c *command, value string) error
}

// command is the parsed command line of a training binary.
type command struct {
	options    driver.Options
	json       bool
	help       bool
	version    bool
	threads    int // threads per rank; 0: share all processors
	launch     launch.Flags
	within     time.Duration // how long to wait for other processes to join; 0: the default
	timeout    time.Duration // how long a collective waits; 0: not given
	fastDevRun bool
	lrFind     bool
	toGenerate string        // the last flag that only --generate takes
	finder     *lrFinder     // the range test of --lr-find; nil before it begins
	maxTime    time.Duration // after which training stops; 0: no limit
}

// set sets an option to a flag's value.
func (c *command) set(option *string, v string) error {
	*option = v
	return nil
}

// change changes a setting of the job.
func (c *command) change(path, value string) error {
	c.options.Changes = append(c.options.Changes, settings.Change{Path: path, Value: value})
	return nil
}

// changeGenerated changes a setting by a flag that only --generate takes.
func (c *command) changeGenerated(name, path, value string) error {
	if value == "0" && name != "temperature" { // as a setting, 0 is none
		return exit.Errorf(exit.Input, "--%s 0: must be at least 1; without the flag, the default applies", name)
	}
	c.toGenerate = "--" + name
	return c.change(path, value)
}

// flags lists all flags in the order of --help.
var flags = []flag{
	{"dir", "D", "folder for metrics.jsonl, TensorBoard events and checkpoints/ (default runs/NAME)", false,
		func(c *command, v string) error { return c.set(&c.options.Dir, v) }},
	{"resume", "auto|never|STEP|DIR", "checkpoint to start from (default auto: the newest complete one)", false,
		func(c *command, v string) error { return c.set(&c.options.Resume, v) }},
	{"steps", "N", "train until step N, counted from the start of training, also after a resume", false,
		func(c *command, v string) error { return c.change("train.steps", v) }},
	{"max-time", "DURATION", "after this time, such as 23h50m, save a checkpoint and exit with 75, as on SIGTERM",
		false, maxTimeFlag},
	{"fast-dev-run", "", "try a step, an evaluation of one batch and a checkpoint in a temporary folder", true,
		func(c *command, _ string) error {
			c.fastDevRun = true
			return nil
		}},
	{"lr-find", "", "try 100 steps (--steps) at growing learning rates in a temporary folder, and suggest a rate", true,
		func(c *command, _ string) error {
			c.lrFind = true
			return nil
		}},
	{"overfit-batches", "N", "train on the first N batches again and again, to see if the model can learn them; the " +
		"default folder is then runs/NAME-overfit-N",
		false,
		func(c *command, v string) error { return count("--overfit-batches", v, &c.options.OverfitBatches) }},
	{"check-replicas", "N", "every N steps, compare the copies of each parameter on all ranks, and end if two " +
		"differ", false,
		func(c *command, v string) error { return count("--check-replicas", v, &c.options.CheckReplicas) }},
	{"param-norms", "N", "every N steps, write the norms of each parameter and its gradient to the metrics", false,
		func(c *command, v string) error { return count("--param-norms", v, &c.options.ParamNorms) }},
	{"set", "k=v", "change a setting of the job, such as train.optimizer.lr=1e-4; null restores the compiled value; " +
		"may be repeated",
		false, setFlag},
	{"data", "FILE", "train on this file instead of the job's data", false, dataFlag},
	{"checkpoint-dir", "D", "folder for checkpoints (default DIR/checkpoints)", false,
		func(c *command, v string) error { return c.set(&c.options.CheckpointDir, v) }},
	{"checkpoint-every", "N", "steps between checkpoints; 0: only at the end and when stopped", false,
		func(c *command, v string) error { return c.change("train.checkpoint.every", v) }},
	{"log-dir", "D", "folder for metrics.jsonl and TensorBoard events (default DIR)", false,
		func(c *command, v string) error { return c.set(&c.options.LogDir, v) }},
	{"trace-steps", "A:B", "write a trace of steps A to B of every rank, for ui.perfetto.dev, to the log folder", false,
		traceFlag},
	{"metrics", "ADDR", "serve Prometheus metrics at this address, such as :9400; needs planc compile --with-metrics",
		false, func(c *command, v string) error { return c.set(&c.options.Metrics, v) }},
	{"seed", "S", "random seed of parameters, data order, dropout and sampling", false,
		func(c *command, v string) error { return c.change("train.seed", v) }},
	{"threads", "N", "threads per rank (default: all processors, shared by the ranks)", false, threadsFlag},
	{"cpu-isa", "auto|amx|avx512|avx2|portable", "instruction set of the CPU kernels (default auto)", false, isaFlag},
	{"export", "DIR", "do not train: write the checkpoint that --resume names to this new folder, in Hugging " +
		"Face's layout", false,
		func(c *command, v string) error { return c.set(&c.options.Export, v) }},
	{"export-dtype", "bf16|fp16|fp32", "type of the tensors that --export writes (default: that of the checkpoint)",
		false, exportTypeFlag},
	{"generate", "PROMPT", "do not train: continue the text with the parameters of the checkpoint that --resume " +
		"names, and print it", false, generateFlag},
	{"max-new-tokens", "N", "tokens that --generate adds (default 160)", false,
		func(c *command, v string) error {
			return c.changeGenerated("max-new-tokens", "train.eval.sample_tokens", v)
		}},
	{"temperature", "T", "of --generate: logits are divided by it before a token is drawn (default 0.8)", false,
		func(c *command, v string) error { return c.changeGenerated("temperature", "train.eval.temperature", v) }},
	{"top-k", "K", "of --generate: draw from the K most likely tokens; 1: always the most likely (default: all)",
		false,
		func(c *command, v string) error { return c.changeGenerated("top-k", "train.eval.top_k", v) }},
	{"nnodes", "N", "number of machines; start the program once on each" + onlyGPUs, false,
		func(c *command, v string) error { c.launch.Nodes = v; return nil }},
	{"node-rank", "R", "number of this machine, from 0", false, func(c *command, v string) error {
		c.launch.NodeRank = v
		return nil
	}},
	{"nproc-per-node", "N", "devices per machine (default: the program's devices, divided evenly)", false,
		func(c *command, v string) error { c.launch.PerNode = v; return nil }},
	{"master-addr", "HOST", "address of machine 0", false, func(c *command, v string) error {
		c.launch.Addr = v
		return nil
	}},
	{"master-port", "PORT", "port on machine 0 (default 29500)", false, func(c *command, v string) error {
		c.launch.Port = v
		return nil
	}},
	{"join-timeout", "DURATION", "how long processes wait for each other at the start (default 10m)", false, joinFlag},
	{"timeout", "DURATION", "how long a collective waits for a missing rank (default 10m, or $" +
		timeoutVariable + ")", false,
		func(c *command, v string) error { return c.setTimeout("--timeout ", v) }},
	{"log", "text|json", "format of the progress on stderr and of the summary on stdout (default text)",
		false, logFlag},
	{"version", "", "print the planc version, the platform and the program's hash", true,
		func(c *command, _ string) error {
			c.version = true
			return nil
		}},
	{"help", "", "print this help", true, func(c *command, _ string) error { c.help = true; return nil }},
}

// onlyGPUs is added to the help of --nnodes in programs for CPUs.
const onlyGPUs = "; programs for CPUs accept only 1, and none of the next four flags"

// isas are the allowed values of --cpu-isa.
var isas = []string{"auto", "amx", "avx512", "avx2", "portable"}

func setFlag(c *command, v string) error {
	path, value, ok := strings.Cut(v, "=")
	if !ok {
		return fmt.Errorf("--set %s: write it as --set %s=VALUE", v, v)
	}
	return c.change(path, value)
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
	c.options.Changes = append(c.options.Changes,
		settings.Change{Path: "data.train", Value: []program.File{{Path: path, Weight: 1}}},
		settings.Change{Path: settings.DataOnly})
	return nil
}

func generateFlag(c *command, v string) error {
	if v == "" {
		return errors.New(`--generate: the prompt is empty; give a text to continue, such as --generate "The light"`)
	}
	return c.set(&c.options.Generate, v)
}

// maxThreads bounds --threads. A larger number is most likely a typing error, and each thread takes memory.
const maxThreads = 1024

func threadsFlag(c *command, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > maxThreads {
		return fmt.Errorf("--threads %s: must be a number from 1 to %d", v, maxThreads)
	}
	c.threads = n
	return nil
}

// count parses the value of a flag that is a number of batches or steps.
func count(name, v string, to *int) (err error) {
	*to, err = strconv.Atoi(v)
	if err != nil || *to < 1 {
		return fmt.Errorf("%s %s: must be a whole number of at least 1", name, v)
	}
	return nil
}

func exportTypeFlag(c *command, v string) error {
	if _, ok := tensors.ExportTypes[v]; !ok {
		return fmt.Errorf("--export-dtype %s: must be bf16, fp16 or fp32; without the flag, tensors have the type of "+
			"the checkpoint", v)
	}
	return c.set(&c.options.ExportType, v)
}

func isaFlag(c *command, v string) error {
	if !slices.Contains(isas, v) {
		return fmt.Errorf("--cpu-isa %s: must be one of %s", v, strings.Join(isas, ", "))
	}
	return c.set(&c.options.ISA, v)
}

func maxTimeFlag(c *command, v string) (err error) {
	c.maxTime, err = time.ParseDuration(v)
	if err != nil || c.maxTime <= 0 {
		return fmt.Errorf("--max-time %s: must be a positive duration, such as 90m or 23h50m", v)
	}
	return nil
}

func traceFlag(c *command, v string) error {
	a, b, ok := strings.Cut(v, ":")
	first, err1 := strconv.Atoi(a)
	last, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || first < 1 || last < first {
		return fmt.Errorf("--trace-steps %s: must be the first and the last step to trace, such as 10:12", v)
	}
	c.options.Trace = driver.TraceSteps{First: first, Last: last}
	return nil
}

func joinFlag(c *command, v string) (err error) {
	c.within, err = time.ParseDuration(v)
	if err != nil || c.within <= 0 {
		return fmt.Errorf("--join-timeout %s: must be a positive duration, such as 90s or 10m", v)
	}
	return nil
}

// timeoutVariable is the environment variable with the same meaning as --timeout.
const timeoutVariable = "PLANC_TIMEOUT"

// setTimeout parses the timeout of collectives. name is its prefix in messages: "--timeout " or "PLANC_TIMEOUT=".
func (c *command) setTimeout(name, v string) (err error) {
	c.timeout, err = time.ParseDuration(v)
	if err != nil || c.timeout <= 0 {
		return fmt.Errorf("%s%s: must be a positive duration, such as 90s or 10m", name, v)
	}
	return nil
}

// environment reads the environment variables of flags that were not given.
func (c *command) environment(lookup func(string) (string, bool)) error {
	if v, _ := lookup(timeoutVariable); v != "" && c.timeout == 0 {
		if err := c.setTimeout(timeoutVariable+"=", v); err != nil {
			return exit.Wrap(exit.Input, err)
		}
	}
	if c.timeout > 0 {
		c.options.Timeout = c.timeout
	}
	return nil
}

func logFlag(c *command, v string) error {
	if v != "text" && v != "json" {
		return fmt.Errorf("--log %s: must be text or json", v)
	}
	c.json = v == "json"
	return nil
}

// parse reads the arguments of a training binary. It accepts --name value and --name=value.
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
			return nil, exit.Errorf(exit.Input, "unknown flag %s; flags have two dashes, and --help lists them", arg)
		}
		if !dashes || name == "" {
			return nil, exit.Errorf(exit.Input, "unexpected argument %s; --help lists the flags", arg)
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
				return nil, exit.Errorf(exit.Input, "--%s needs a value: --%s %s", name, name, f.arg)
			}
			value, args = args[0], args[1:]
		}
		if err := f.apply(c, value); err != nil {
			return nil, exit.Wrap(exit.Input, err)
		}
	}
	return c, nil
}

// findFlag returns the flag with a name. It also accepts underscores, as torchrun does: nproc_per_node. The error
// suggests another flag, filled in with the value if possible.
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
		hint = strings.Replace(settings.DidYouMean(name, names), "mean ", "mean --", 1)
	}
	if hint == "" {
		hint = "; --help lists the flags"
	}
	return nil, exit.Errorf(exit.Input, "unknown flag --%s%s", name, hint)
}

// usage prints the flags.
func usage(w io.Writer, p *rank.Program) {
	head := fmt.Sprintf("%s: trains %s as planc compiled it%s: %s\n", filepath.Base(os.Args[0]), p.Name, needsText(p),
		p.Plan.Text)
	fmt.Fprintln(w, fold.Lines(head, fold.Columns, fold.Indent))
	const at = 28 // column at which a flag's help begins
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
	fmt.Fprint(w, "\n", fold.Lines("Exit codes: 0 all steps are done, 1 failed, 2 wrong flags, data or checkpoint, 3 "+
		"this machine or "+
		"launch cannot run the program, 5 stopped by the numerics guard, 75 stopped on request.",
		fold.Columns, 0), "\n")
}

// needsText says which devices a program for GPUs needs.
func needsText(p *rank.Program) string {
	switch n := p.MeshSize(); {
	case p.Devices == nil:
		return ""
	case n == 1:
		return ", for 1 NVIDIA GPU"
	default:
		return fmt.Sprintf(", for %d NVIDIA GPUs", n)
	}
}

// reportTo sets where and how the run reports.
func (c *command) reportTo(stderr *os.File) {
	if c.json {
		c.options.Logger = logger(stderr)
		return
	}
	c.options.Text, c.options.Terminal = stderr, isTerminal(stderr)
}

// logger returns a logger that writes JSON lines.
func logger(w io.Writer) *slog.Logger { return slog.New(slog.NewJSONHandler(visible.Writer(w), nil)) }

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
