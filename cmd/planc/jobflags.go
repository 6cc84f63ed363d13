package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir/spec/strict"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// jobFlags are the flags by which a command line changes a job.
type jobFlags struct {
	cmd   *cobra.Command
	set   []string
	quick []string // values, in the order of spec.Quick
	keep  string   // --save

	noMeasure bool // this machine's CPU is priced as the catalogue's cpu
}

func (f *jobFlags) register(c *cobra.Command) {
	f.cmd = c
	c.Flags().SortFlags = false
	f.flags(c.Flags())
}

// flags are those that the commands with a JOB share.
func (f *jobFlags) flags(to *pflag.FlagSet) {
	f.quick = make([]string, len(spec.Quick))
	to.StringArrayVar(&f.set, "set", nil, "set a field of the job: `KEY=VALUE`, null removes; repeatable")
	for i, q := range spec.Quick {
		to.StringVar(&f.quick[i], q.Flag, "", q.Key+": "+q.Doc)
	}
	to.BoolVar(&f.noMeasure, "no-measure", false,
		"price a job on cpu by the catalogue's rates; else screens and run measure this CPU, once")
}

// registerSave is for commands that answer questions.
func (f *jobFlags) registerSave(c *cobra.Command) {
	c.Flags().StringVar(&f.keep, "save", "",
		"write the job that the question was to `FILE`, which must not be there yet")
}

// saveJob is --save.
func saveJob(ui *console.Console, j *loaded, f jobFlags) error {
	if f.keep == "" {
		if f.cmd.Flags().Changed("save") {
			return inputErrorf(BadFlag, "", "%s --save needs the name of a file", f.cmd.CommandPath())
		}
		return nil
	}
	return writeNewFile(ui, f.keep, "# Written by planc "+f.cmd.Name()+" --save; planc init writes one with every "+
		"field.\n"+
		string(j.Save(f.keep)), "planc plan "+shell.QuotePath(f.keep))
}

// overrides are the changes in the order in which they apply: quick flags, then --set.
func (f *jobFlags) overrides() (out []spec.Override) {
	for i, q := range spec.Quick {
		if f.cmd.Flags().Changed(q.Flag) {
			o, _ := spec.QuickFlag(q.Flag, f.quick[i])
			out = append(out, o)
		}
	}
	for _, s := range f.set {
		out = append(out, spec.SetFlag(s))
	}
	return out
}

// path is the job file that the arguments mean: JOB, or none for a question by flags alone (--model without a
// JOB), or planc.yaml here.
func (f *jobFlags) path(args []string) (string, error) {
	if len(args) == 0 && f.cmd.Flags().Changed("model") {
		return "", nil
	}
	path := jobFile
	if len(args) > 0 {
		path = args[0]
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		folder := path
		path = filepath.Join(folder, jobFile)
		if missing(path) {
			return "", ir.Diags{{Pos: ir.Pos{File: folder}, Code: spec.NoFile, Fix: nearestJob(path),
				Msg: "this is a folder without a " + jobFile}}
		}
	}
	switch {
	case path == "-" || !missing(path):
		return path, nil
	case len(args) > 0:
		return "", ir.Diags{{Pos: ir.Pos{File: path}, Code: spec.NoFile, Fix: nearestJob(path),
			Msg: "there is no such job file"}}
	}
	switch file := otherJobFile(); {
	case filepath.Ext(file) == ".toml":
		return "", inputErrorf(spec.NoFile, "",
			"there is no %s here, but a %s; planc reads YAML or JSON, not TOML: write the job as %[1]s, or planc "+
				"init writes one", jobFile, file)
	case file != "":
		return "", inputErrorf(spec.NoFile, "", "there is no %s here, but a %s; name it: %s %[2]s", jobFile, file,
			f.cmd.CommandPath())
	}
	if f.quick == nil {
		return "", inputErrorf(spec.NoFile, "", "there is no %s here; name a job file: %s JOB", jobFile,
			f.cmd.CommandPath())
	}
	return "", inputErrorf(spec.NoFile, "",
		"there is no %s here; name a job file, or ask by flags alone: %s --model NAME --cluster NAME --global-batch "+
			"N --seq-len N",
		jobFile, f.cmd.CommandPath())
}

// otherJobFile is a file here that has the name of a job and another extension; "" if there is none.
func otherJobFile() string {
	for _, ext := range []string{".yml", ".json", ".toml"} {
		if file := strings.TrimSuffix(jobFile, filepath.Ext(jobFile)) + ext; !missing(file) {
			return file
		}
	}
	return ""
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// nearestJob is the YAML file that was meant by a path that does not exist: one next to it of almost its name, or the
// only one.
func nearestJob(path string) string {
	var names []string
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		// a folder whose name is a pattern has no neighbours
		found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), pattern))
		names = append(names, found...)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Stat(name)
		return err != nil || info.IsDir()
	})
	if len(names) == 1 {
		return names[0]
	}
	return ir.Nearest(path, names)
}

// quickFlag returns the flag that sets a field; "" if only --set does. --cluster also takes the short form of a whole
// cluster, 16xh100.
func quickFlag(key string) string {
	if key == "cluster" {
		key = "cluster.node"
	}
	for _, q := range spec.Quick {
		if q.Key == key {
			return "--" + q.Flag
		}
	}
	return ""
}

// byFlags rewrites input errors in terms of flags: it names the flag that gives a missing field if there is no job
// file, and the flag of a suggested value if the wrong value came from a flag.
func byFlags(path string, err error) error {
	var diags ir.Diags
	if !errors.As(err, &diags) {
		return err
	}
	diags = slices.Clone(diags)
	for i := range diags {
		d := &diags[i]
		key, _, _ := strings.Cut(d.Msg, " ")
		switch flag := quickFlag(key); {
		case path != "" || d.Code != spec.Missing || flag == "":
		case key == "cluster":
			d.Msg = "cluster is missing; --cluster NAME gives it; planc clusters lists the names"
		default:
			d.Msg += "; " + flag + " gives it"
		}
		key, value, _ := strings.Cut(d.Fix, "=")
		if flag := quickFlag(key); strict.IsFlag(d.Pos) && value != "" && flag != "" {
			d.Fix = flag + " " + value
		}
	}
	return diags
}
