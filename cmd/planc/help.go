package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/planc-dev/planc/cmd/planc/internal/checkscreen"
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/interop/formats"
)

// exitRow is the meaning of one exit status, for planc and for a binary that it built.
type exitRow struct{ code, planc, binary, restart string }

// exits is the exit table.
var exits = []exitRow{
	{"0", "done", "all steps done", "–"},
	{"1", "environment error (files, Go, the machine)", "failed", "yes"},
	{"2", "input error, or a pin breaks a rule", "flags, data or checkpoint invalid", "no"},
	{"3", "no plan fits, or the job is for another machine", "this machine or launch cannot run this program",
		"elsewhere"},
	{"4", "the lock differs or is missing; check: too slow", "–", "–"},
	{"5", "–", "stopped by the numerics guard", "a human decides"},
	{"75", "–", "stopped on request, checkpoint committed", "at once"},
}

// topics are the help pages of `planc help TOPIC` that are not about a command.
var topics = map[string]func(root *cobra.Command) string{
	"exit":     func(*cobra.Command) string { return exitScreen() },
	"rows":     func(*cobra.Command) string { return rowsScreen() },
	"formats":  func(*cobra.Command) string { return checkscreen.Formats(formats.All) },
	"markdown": markdown,
}

// exitScreen formats the exit table.
func exitScreen() string {
	columns := []layout.Column{layout.Right("EXIT"), layout.Left("PLANC"), layout.Left("A TRAINING BINARY")}
	var rows [][]string
	for _, e := range exits {
		text := e.binary
		if e.restart != "–" {
			text += "; restart: " + e.restart
		}
		rows = append(rows, []string{e.code, e.planc, text})
	}
	return layout.Table(columns, rows) + "\n" + layout.Prose("", 0,
		"go run and go generate turn every status except 0 into 1; the message says what failed.")
}

// helpOn prints the help of a command or a topic.
func helpOn(root *cobra.Command, args []string) error {
	if len(args) == 1 && topics[args[0]] != nil {
		_, err := fmt.Fprint(root.OutOrStdout(), topics[args[0]](root))
		return err
	}
	if err := checkFirstWord(root, args); err != nil {
		return err
	}
	root.InitDefaultVersionFlag()
	c, _, err := root.Find(args)
	if err != nil {
		return err
	}
	c.InitDefaultHelpFlag()
	return c.Help()
}

// layOutHelp wraps help texts and flag descriptions at the screen's width.
func layOutHelp(root *cobra.Command) {
	root.SetHelpTemplate(strings.Replace(root.HelpTemplate(), "trimTrailingWhitespaces",
		"paragraphs | trimTrailingWhitespaces", 1))
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages",
		fmt.Sprint("Flags.FlagUsagesWrapped ", layout.ScreenWidth)))
}

// paragraphs wraps each paragraph of a text at the screen's width.
func paragraphs(text string) string {
	parts := strings.Split(text, "\n\n")
	for i, p := range parts {
		parts[i] = strings.TrimSuffix(layout.Prose("", 0, p), "\n")
	}
	return strings.Join(parts, "\n\n")
}

// markdown returns the generated part of docs/cli.md: all commands and flags, with their help texts.
func markdown(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("## planc\n\nAll commands have these flags, except `--version`. The short flags are `-o`, `-q`, " +
		"`-v`, `-h` and `-C`.\n\n")
	b.WriteString(flagTable(root.PersistentFlags(), nil) +
		"| `--help`, `-h` | print help; so does `planc help COMMAND`; `planc help exit` prints the exit codes |\n" +
		"| `--version` | print planc's version |\n")
	job := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&jobFlags{}).flags(job)
	b.WriteString("\n## Flags of the job\n\nCommands that take a JOB have these flags. `--set` changes any field of " +
		"the job by its dotted name, such as\n" +
		"`--set train.optimizer.lr=1e-4` or `--set plan.tp=null`. The others are short names of fields. Flags " +
		"override the job file,\n" +
		"and `--set` overrides the other flags.\n\n" + flagTable(job, nil))
	for _, c := range withParts(root.Commands()) {
		if !c.Hidden && !strings.HasPrefix(c.CommandPath(), "planc completion") {
			b.WriteString(commandSection(c, job))
		}
	}
	b.WriteString("\n## planc completion\n\n`planc completion bash`, `zsh`, `fish` or `powershell` prints a script " +
		"that completes commands, flags, models, clusters,\n" +
		"job files, fields of the job and keys of the plan. `planc completion bash --help` explains how to install " +
		"it.\n")
	b.WriteString("\n## Exit codes\n\n| code | planc | a training binary | restart it? |\n|---|---|---|---|\n")
	for _, e := range exits {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", e.code, e.planc, e.binary, e.restart)
	}
	b.WriteString("\n`go run` turns every code except 0 into 1; the message says what failed.\n")
	return b.String()
}

// commandSection returns the section of one command: what it does, examples, its own flags.
func commandSection(c *cobra.Command, job *pflag.FlagSet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n    %s %s\n\n%s\n\n", c.CommandPath(), c.Parent().CommandPath(), c.Use, c.Long)
	title := "Example"
	if strings.Contains(c.Example, "\n") {
		title = "Examples"
	}
	fmt.Fprintf(&b, "%s:\n\n%s\n", title, indented(c.Example))
	takesJob := c.Flags().Lookup("set") != nil
	if !takesJob {
		job = nil
	}
	if t := flagTable(c.LocalNonPersistentFlags(), job); t != "" {
		b.WriteString("\n" + t)
	}
	if takesJob {
		b.WriteString("\nAnd the flags of the job.\n")
	}
	return b.String()
}

// indented returns a text with two spaces in front of each line.
func indented(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// flagTable returns a Markdown table with a row for each visible flag, except those in excluded.
func flagTable(flags, excluded *pflag.FlagSet) string {
	var b strings.Builder
	flags.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || excluded != nil && excluded.Lookup(f.Name) != nil {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		word := strings.TrimSpace("--" + f.Name + " " + name)
		short := ""
		if f.Shorthand != "" {
			short = ", `-" + f.Shorthand + "`"
		}
		fmt.Fprintf(&b, "| `%s`%s | %s |\n", strings.ReplaceAll(word, "|", `\|`), short,
			strings.ReplaceAll(usage, "|", `\|`))
	})
	if b.Len() == 0 {
		return ""
	}
	return "| flag | |\n|---|---|\n" + b.String()
}
