package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/formats"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
)

// completer is a completion function of cobra.
type completer = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective)

// jobExtensions lists the extensions of job files.
var jobExtensions = []string{"yaml", "yml"}

// oneOf returns a completer with the given names.
func oneOf(names func() []string) completer {
	return func(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return prefixed(names(), word), cobra.ShellCompDirectiveNoFileComp
	}
}

// firstArg returns a completer of the first argument with the given names.
func firstArg(names func() []string) completer {
	return func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return oneOf(names)(c, args, word)
	}
}

// jobArg completes a JOB with job files and folders.
func jobArg(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 && strings.Contains(c.Use, "[JOB]") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return jobExtensions, cobra.ShellCompDirectiveFilterFileExt
}

func prefixed(names []string, word string) (out []cobra.Completion) {
	for _, n := range names {
		if strings.HasPrefix(n, word) {
			out = append(out, n)
		}
	}
	return out
}

// setKeys completes --set: first the field, then its value.
func setKeys(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if field, value, ok := strings.Cut(word, "="); ok {
		return setValues(field, value), cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, f := range spec.Fields() {
		if strings.HasPrefix(f.Path, word) {
			out = append(out, cobra.CompletionWithDesc(f.Path+"=", f.Doc))
		}
	}
	return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// setValues completes the value of a field: its names, and null, which removes it.
func setValues(field, value string) []cobra.Completion {
	names := fieldValues(field)
	switch field {
	case "model", "model.base":
		names = spec.ModelNames()
	case "cluster", "cluster.node":
		names = clusterWords()
	}
	var out []cobra.Completion
	for _, n := range prefixed(append(names[:len(names):len(names)], "null"), value) {
		out = append(out, field+"="+n)
	}
	return out
}

// fieldValues returns the names that a field takes and planc supports; nil if it takes anything else, or nothing yet.
func fieldValues(path string) []string {
	for _, f := range spec.Fields() {
		switch {
		case f.Path != path:
			continue
		case slices.Equal(f.Supported, []string{spec.NoneSupported}):
			return nil
		case len(f.Supported) > 0:
			return f.Supported
		}
		return f.Enum
	}
	return nil
}

// whyNotKeys completes --why-not: the key of the last of several KEY=VALUE.
func whyNotKeys(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := ""
	if i := strings.LastIndexByte(word, ','); i >= 0 {
		before, word = word[:i+1], word[i+1:]
	}
	var out []cobra.Completion
	for _, key := range append(spec.PinNames(), "rest") {
		if strings.HasPrefix(key, word) {
			out = append(out, before+key+"=")
		}
	}
	return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// sweepKeys completes --sweep.
func sweepKeys(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, key := range planner.SweepKeys() {
		if strings.HasPrefix(key, word) {
			out = append(out, key+"=")
		}
	}
	return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// flagCompleters maps the names of flags, of any command, to completers of their values.
var flagCompleters = map[string]completer{
	"model":     oneOf(spec.ModelNames),
	"cluster":   oneOf(clusterWords),
	"set":       setKeys,
	"why-not":   whyNotKeys,
	"precision": oneOf(func() []string { return fieldValues("train.precision.compute") }),
	"engine":    values("planc", "megatron", "megatron-fsdp", "fsdp", "deepspeed", "hai-llm"),
	"objective": oneOf(func() []string { return fieldValues("objective.kind") }),
	"target":    values("cpu", "cuda"),
	"after":     oneOf(stages),
	"sweep":     sweepKeys,
}

// values returns a completer with fixed words.
func values(words ...string) completer { return oneOf(func() []string { return words }) }

// clusterWords returns the names that --cluster takes.
func clusterWords() []string {
	names := costmodel.ClusterNames()
	for alias := range costmodel.ClusterAliases() {
		names = append(names, alias)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addCompletion adds cobra's command `planc completion SHELL`.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Example = "  planc completion bash >~/.local/share/bash-completion/completions/planc"
			c.Short = "print a shell script that completes commands, names and keys"
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
			c.Args = func(_ *cobra.Command, args []string) error { return unknownShell(c, args) }
		}
	}
}

// unknownShell reports a shell that has no completion script.
func unknownShell(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, s := range c.Commands() {
		names = append(names, s.Name())
	}
	return inputErrorf(UnknownCommand, ir.Nearest(args[0], names), "unknown shell %s; the shells are %s", args[0],
		strings.Join(names, ", "))
}

// complete adds completions for the flags and the job arguments of a command.
func complete(c *cobra.Command) {
	for name, f := range flagCompleters {
		if c.Flags().Lookup(name) != nil {
			if err := c.RegisterFlagCompletionFunc(name, f); err != nil {
				panic("planc: completion of --" + name + ": " + err.Error())
			}
		}
	}
	if c.ValidArgsFunction == nil && strings.Contains(c.Use, "[JOB") {
		c.ValidArgsFunction = jobArg
	}
}

// anyFile completes names of files of any kind.
func anyFile(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// formatThen returns a completer of a FORMAT, and of the arguments after it with another completer.
func formatThen(all func() []*interop.Format, rest completer) completer {
	return func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return rest(c, args[1:], word)
		}
		return oneOf(func() []string { return formats.Names(all()) })(c, args, word)
	}
}
