package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/planc-dev/planc/cmd/planc/internal/otherinput"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Codes of input errors on the command line.
const (
	// UnknownCommand is reported for a word that is not a command.
	//
	// Example:
	//	planc plna
	UnknownCommand ir.Code = "UnknownCommand"

	// UnknownFlag is reported for a flag that a command does not have.
	//
	// Example:
	//	planc plan --jsno
	UnknownFlag ir.Code = "UnknownFlag"

	// BadFlag is reported for a flag with a missing or invalid value.
	//
	// Example:
	//	planc plan --set
	BadFlag ir.Code = "BadFlag"

	// TooManyArguments is reported for a second JOB.
	//
	// Example:
	//	planc plan a.yaml b.yaml
	TooManyArguments ir.Code = "TooManyArguments"
)

// commandHints maps words that people type instead of a command to what they should type.
var commandHints = map[string]string{"version": "use planc --version", "train": "use planc run",
	"build":  "use planc compile",
	"search": "use planc plan", "why-not": "use planc explain --why-not KEY=VALUE"}

// inputErrorf returns an input error without a position: one [ir.Diag].
func inputErrorf(code ir.Code, fix, format string, args ...any) error {
	return ir.Diags{{Code: code, Msg: fmt.Sprintf(format, args...), Fix: fix}}.Err()
}

// execute parses the arguments and runs the command.
func (a *app) execute() error {
	root := a.root()
	if err := errors.Join(checkFirstWord(root, a.args), checkSet(a.args)); err != nil {
		return err
	}
	root.SetArgs(a.args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	return root.Execute()
}

func init() {
	cobra.EnableCommandSorting = false // help lists commands in the order in which people need them
	cobra.AddTemplateFunc("paragraphs", paragraphs)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "planc",
		Short: "find the best parallel plan for a model on a cluster, explain it, and compile it",
		Long: `planc finds the best parallel plan (DP × TP × PP × ZeRO, ...) for training a model on a cluster. It explains
the plan, predicts whether it fits, and compiles it to one binary that trains.

JOB is a job file, a folder with a planc.yaml, or - for stdin. The default is planc.yaml in this folder. Without a job
file, describe the job by flags: --model, --cluster and so on. "planc help exit" prints the exit codes.`,
		Example:       "planc plan --model llama3-8b --cluster dgx-h100 --global-batch 128 --seq-len 8192",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	layOutHelp(root)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	flags := root.PersistentFlags()
	flags.BoolVarP(&a.Quiet, "quiet", "q", false, "print only errors on stderr")
	flags.BoolVarP(&a.Verbose, "verbose", "v", false, "print more details on stderr")
	flags.StringVarP(&a.dir, "chdir", "C", "", "change to `DIR` first")
	flags.SortFlags = false
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.chdir() }
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return flagError(c, err, a.args) })
	root.AddCommand(planCommand(a), explainCommand(a), checkCommand(a), importCommand(a), exportCommand(a),
		compileCommand(a), runCommand(a), genCommand(a), verifyCommand(a), diffCommand(a), irCommand(a))
	root.AddCommand(validateCommand(a), calibrateCommand(a), modelsCommand(a), clustersCommand(a), dataCommand(a),
		checkpointCommand(a), initCommand(a), doctorCommand(a), detectCommand(a))
	root.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Short: "print the help of a command", Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error { return helpOn(root, args) }})
	onceEach(flags)
	for _, c := range withParts(root.Commands()) {
		onceEach(c.Flags())
		c.Example = indented(c.Example)
		complete(c)
	}
	root.Example = indented(root.Example)
	addCompletion(root)
	return root
}

// withParts returns commands, and the commands of which they consist.
func withParts(commands []*cobra.Command) (all []*cobra.Command) {
	for _, c := range commands {
		all = append(append(all, c), withParts(c.Commands())...)
	}
	return all
}

func (a *app) chdir() error {
	if a.dir == "" {
		return nil
	}
	if err := os.Chdir(a.dir); err != nil {
		return inputErrorf(BadFlag, "", "-C %s: %v", a.dir, errors.Unwrap(err))
	}
	return nil
}

// checkFirstWord reports an unknown first word. It runs before flag parsing, because an unknown command's flags are
// unknown too.
func checkFirstWord(root *cobra.Command, args []string) error {
	word := firstWord(args)
	names := []string{"help", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}
	var shown []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
		if !c.Hidden {
			shown = append(shown, c.Name())
		}
	}
	if word == "" || slices.Contains(names, word) {
		return nil
	}
	if fix := ir.Nearest(word, shown); fix != "" && commandHints[word] == "" {
		return inputErrorf(UnknownCommand, fix, "unknown command %s", word)
	}
	hint := commandHints[word]
	if hint == "" {
		hint = "planc help lists the commands"
	}
	return inputErrorf(UnknownCommand, "", "unknown command %s; %s", word, hint)
}

// checkSet reports --set KEY VALUE: without "=", the value would be parsed as a JOB.
func checkSet(args []string) error {
	for i := 0; i+2 < len(args) && args[i] != "--"; i++ {
		key, value := args[i+1], args[i+2]
		if args[i] == "--set" && !strings.Contains(key, "=") && !strings.HasPrefix(value, "-") && missing(value) {
			return inputErrorf(strict.BadSet, fmt.Sprintf("--set %s=%s", shell.Quote(key), shell.Quote(value)),
				"--set %s %s must be KEY=VALUE", key, value)
		}
	}
	return nil
}

// firstWord returns the first argument that is neither a flag nor the value of -C.
func firstWord(args []string) string {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "-C" || arg == "--chdir":
			i++
		case arg == "--":
			return ""
		case !strings.HasPrefix(arg, "-"):
			return arg
		}
	}
	return ""
}

// flagTypes maps pflag's type names to what a value of that type must be.
var flagTypes = map[string]string{"int": "a whole number", "bool": "true or false"}

// flagError converts an error of pflag to an input error that suggests the nearest flag.
func flagError(c *cobra.Command, err error, args []string) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var twice *repeatedFlagError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(c, unknown, args)
	case errors.As(err, &missing):
		return inputErrorf(BadFlag, "", "%s --%s needs a value", c.CommandPath(), missing.GetFlag().Name)
	case errors.As(err, &invalid) && errors.As(err, &twice):
		return inputErrorf(BadFlag, "", "%s --%s is given twice, as %s and as %s; give one value", c.CommandPath(),
			invalid.GetFlag().Name, shell.Quote(twice.first), shell.Quote(twice.second))
	case errors.As(err, &invalid):
		kind := flagTypes[invalid.GetFlag().Value.Type()]
		if kind == "" {
			return inputErrorf(BadFlag, "", "%s --%s: invalid value %q", c.CommandPath(), invalid.GetFlag().Name,
				invalid.GetValue())
		}
		return inputErrorf(BadFlag, "", "%s --%s is %q; it must be %s", c.CommandPath(), invalid.GetFlag().Name,
			invalid.GetValue(), kind)
	}
	return inputErrorf(BadFlag, "", "%s: %v", c.CommandPath(), err)
}

func unknownFlag(c *cobra.Command, e *pflag.NotExistError, args []string) error {
	name := e.GetSpecifiedName()
	if e.GetSpecifiedShortnames() != "" {
		if long := oneDash(c, args); long != "" {
			return inputErrorf(UnknownFlag, "-"+long, "%s has no flag %s", c.CommandPath(), long)
		}
		return inputErrorf(UnknownFlag, "", "%s has no flag -%s; the short flags are -o -q -v -h -C",
			c.CommandPath(), name)
	}
	var names []string
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	c.Flags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	fix := ir.Nearest(name, names)
	if other := otherinput.Flag(c.Name(), name, numberGiven(name, args)); other != "" &&
		slices.Contains(names, "set") && !sameName(fix, name) {
		return inputErrorf(UnknownFlag, "", "%s has no flag --%s; use %s", c.CommandPath(), name, other)
	}
	if fix == "" {
		switch {
		case c.Name() == "init":
			return inputErrorf(UnknownFlag, "",
				"planc init has no flag --%s: it always writes the same job; edit the %s that it writes, or write a "+
					"job from flags: "+
					"planc plan --model NAME --cluster NAME --global-batch N --seq-len N --save %s", name,
				jobFile, jobFile)
		case name == "set" || slices.ContainsFunc(spec.Quick, func(q struct{ Flag, Key, Doc string }) bool {
			return q.Flag == name
		}):
			return inputErrorf(UnknownFlag, "", "%s has no flag --%s: it uses only the job file; set the field there",
				c.CommandPath(), name)
		case c.Name() == "run":
			return inputErrorf(UnknownFlag, "",
				"planc run has no flag --%s; put flags of the binary after --: planc run JOB -- %s", name,
				flagAsTyped(name, args))
		}
		return inputErrorf(UnknownFlag, "", "%s has no flag --%s; planc help %s lists them", c.CommandPath(),
			name, c.Name())
	}
	return inputErrorf(UnknownFlag, "--"+fix, "%s has no flag --%s", c.CommandPath(), name)
}

// sameName reports whether two flag names differ only in case, and in underscores for dashes.
func sameName(fix, name string) bool {
	return fix != "" && strings.ReplaceAll(strings.ToLower(name), "_", "-") == fix
}

// flagAsTyped returns a flag of the binary as it was typed, with its value, which may be the next argument.
func flagAsTyped(name string, args []string) string {
	flag := "--" + name
	for i, arg := range args {
		if strings.HasPrefix(arg, flag+"=") {
			return shell.Quote(arg)
		}
		if arg == flag && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && !costmodel.IsFile(args[i+1]) {
			return flag + " " + shell.Quote(args[i+1])
		}
	}
	return flag
}

// jsonFlag adds --json to a command.
func (a *app) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", a.json, "print one JSON document")
}

// noArgs checks that a command has no arguments.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return inputErrorf(TooManyArguments, "", "%s takes no arguments, but %s is given", c.CommandPath(),
			strings.Join(args, ", "))
	}
	return nil
}

// oneName returns a check that a command has at most one NAME.
func oneName(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return inputErrorf(TooManyArguments, "", "%s takes one %s, but %d are given: %s", c.CommandPath(),
				what, len(args),
				strings.Join(args, ", "))
		}
		return nil
	}
}

// oneJob checks that a command has at most one JOB.
func oneJob(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return inputErrorf(TooManyArguments, "", "%s takes one JOB, but %d are given: %s", c.CommandPath(), len(args),
			strings.Join(args, ", "))
	}
	return nil
}
