package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Mistakes on the command line.
const (
	// UnknownCommand is reported for a word that is no command.
	//
	// Example:
	//	planc plna
	UnknownCommand ir.Code = "UnknownCommand"

	// UnknownFlag is reported for a flag that a command does not have.
	//
	// Example:
	//	planc plan --jsno
	UnknownFlag ir.Code = "UnknownFlag"

	// BadFlag is reported for a flag whose value is missing or of the wrong kind.
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

// unsupportedCommands are refused by name.
var unsupportedCommands = []string{"import", "export", "data", "checkpoint"}

// commandHints are words that people type for what is no command here, and what to type.
var commandHints = map[string]string{"version": "planc --version prints it", "train": "planc run trains",
	"build":  "planc compile builds",
	"search": "planc plan searches", "why-not": "planc explain --why-not KEY=VALUE asks that"}

// inputErrorf is an error that one Diag without a place makes.
func inputErrorf(code ir.Code, fix, format string, args ...any) error {
	return ir.Diags{{Code: code, Msg: fmt.Sprintf(format, args...), Fix: fix}}.Err()
}

// execute parses the arguments and runs the command that they name.
func (a *app) execute() error {
	root := a.root()
	if err := errors.Join(checkCommand(root, a.args), checkSet(a.args)); err != nil {
		return err
	}
	root.SetArgs(a.args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return root.Execute()
}

func init() {
	cobra.EnableCommandSorting = false // the order of root is what people need first
	cobra.AddTemplateFunc("paragraphs", paragraphs)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "planc",
		Short: "the best parallel plan for a model on a cluster, why, and a binary that trains it",
		Long: "planc says which plan (DP × TP × PP × ZeRO, ...) a model should train with on a cluster, why,\n" +
			"and whether it fits; and compiles the answer to one binary that trains.\n\n" +
			"JOB is planc.yaml here by default; a file, a folder that holds a planc.yaml, or - for stdin. " +
			"Without a JOB,\n" +
			"--model and the other flags of the job ask a quick question. planc help exit is the exit table.",
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
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "say nothing on stderr but failures")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "say more on stderr")
	flags.StringVarP(&a.dir, "chdir", "C", "", "run as if called in `DIR`")
	flags.SortFlags = false
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.chdir() }
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return flagError(c, err, a.args) })
	root.AddCommand(a.planCommand(), a.explainCommand(), a.compileCommand(), a.runCommand(), a.genCommand(),
		a.verifyCommand(), a.diffCommand(), a.irCommand())
	root.AddCommand(a.validateCommand(), a.calibrateCommand(), a.modelsCommand(), a.clustersCommand(), a.initCommand(),
		a.doctorCommand(), a.detectCommand())
	root.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Short: "help on a command", Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error { return helpOn(root, args) }})
	onceEach(flags)
	for _, c := range root.Commands() {
		onceEach(c.Flags())
		c.Example = indented(c.Example)
		complete(c)
	}
	root.Example = indented(root.Example)
	a.addCompletion(root)
	return root
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

// checkCommand holds the first word against the commands, before flags that only an existing command has are
// looked at.
func checkCommand(root *cobra.Command, args []string) error {
	word := firstWord(args)
	names := []string{"help", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}
	shown := slices.Clone(unsupportedCommands)
	for _, c := range root.Commands() {
		names = append(names, c.Name())
		if !c.Hidden {
			shown = append(shown, c.Name())
		}
	}
	switch {
	case word == "" || slices.Contains(names, word):
		return nil
	case slices.Contains(unsupportedCommands, word):
		return inputErrorf(strict.NotYet, "", "planc %s is not there yet; planc help lists what is", word)
	}
	if fix := ir.Nearest(word, shown); fix != "" && commandHints[word] == "" {
		return inputErrorf(UnknownCommand, fix, "no command %s", word)
	}
	hint := commandHints[word]
	if hint == "" {
		hint = "planc help lists those that there are"
	}
	return inputErrorf(UnknownCommand, "", "no command %s; %s", word, hint)
}

// checkSet finds --set KEY VALUE, whose value would be taken for a JOB.
func checkSet(args []string) error {
	for i := 0; i+2 < len(args) && args[i] != "--"; i++ {
		key, value := args[i+1], args[i+2]
		if args[i] == "--set" && !strings.Contains(key, "=") && !strings.HasPrefix(value, "-") && missing(value) {
			return inputErrorf(strict.BadSet, fmt.Sprintf("--set %s=%s", shellWord(key), shellWord(value)),
				"--set %s %s is not KEY=VALUE", key, value)
		}
	}
	return nil
}

// firstWord is the first argument that is no flag of all commands, nor one's value.
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

// flagTypes are pflag's names of types as people say them.
var flagTypes = map[string]string{"int": "no whole number", "bool": "neither true nor false"}

// flagError turns what pflag reports into a message with the nearest name.
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
		return inputErrorf(BadFlag, "", "%s --%s is given twice, as %s and as %s; it takes one value", c.CommandPath(),
			invalid.GetFlag().Name, shellWord(twice.first), shellWord(twice.second))
	case errors.As(err, &invalid):
		return inputErrorf(BadFlag, "", "%s --%s: %q is %s", c.CommandPath(), invalid.GetFlag().Name,
			invalid.GetValue(),
			cmp.Or(flagTypes[invalid.GetFlag().Value.Type()], "no value of it"))
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
	if there := otherFlag(c.Name(), name, args); there != "" && slices.Contains(names, "set") && !sameName(fix, name) {
		return inputErrorf(UnknownFlag, "", "%s has no flag --%s; use %s", c.CommandPath(), name, there)
	}
	if fix == "" {
		switch {
		case c.Name() == "init":
			return inputErrorf(UnknownFlag, "",
				"planc init has no flag --%s: its job is always the same; set the field in the %s that it writes, or "+
					"save a question's job: "+
					"planc plan --model NAME --cluster NAME --global-batch N --seq-len N --save %s", name,
				jobFile, jobFile)
		case name == "set" || slices.ContainsFunc(spec.Quick, func(q struct{ Flag, Key, Doc string }) bool {
			return q.Flag == name
		}):
			return inputErrorf(UnknownFlag, "", "%s has no flag --%s: it goes by the job file alone; write it there",
				c.CommandPath(), name)
		case c.Name() == "run":
			return inputErrorf(UnknownFlag, "",
				"planc run has no flag --%s; flags of the binary follow --: planc run JOB -- %s", name,
				flagAsTyped(name, args))
		}
		return inputErrorf(UnknownFlag, "", "%s has no flag --%s; planc help %s lists them", c.CommandPath(),
			name, c.Name())
	}
	return inputErrorf(UnknownFlag, "--"+fix, "%s has no flag --%s", c.CommandPath(), name)
}

// sameName reports whether a flag is another but for underscores and case.
func sameName(fix, name string) bool {
	return fix != "" && strings.ReplaceAll(strings.ToLower(name), "_", "-") == fix
}

// flagAsTyped is a flag of the binary's as the command line has it, with its value, which may be the word after it.
func flagAsTyped(name string, args []string) string {
	flag := "--" + name
	for i, arg := range args {
		if strings.HasPrefix(arg, flag+"=") {
			return shellWord(arg)
		}
		if arg == flag && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && !costmodel.IsFile(args[i+1]) {
			return flag + " " + shellWord(args[i+1])
		}
	}
	return flag
}

// jsonFlag gives a command --json.
func (a *app) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", a.json, "print one JSON document")
}

// noArgs is the Args of commands that take none.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return inputErrorf(TooManyArguments, "", "%s takes no argument; there is %s", c.CommandPath(),
			strings.Join(args, ", "))
	}
	return nil
}

// oneName is the Args of commands that take a NAME at most.
func oneName(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return inputErrorf(TooManyArguments, "", "%s takes one %s; these are %d: %s", c.CommandPath(),
				what, len(args),
				strings.Join(args, ", "))
		}
		return nil
	}
}

// oneJob is the Args of commands that take a JOB at most.
func oneJob(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return inputErrorf(TooManyArguments, "", "%s takes one JOB; these are %d: %s", c.CommandPath(), len(args),
			strings.Join(args, ", "))
	}
	return nil
}
