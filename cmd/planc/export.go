package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/shell"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/formats"
	"github.com/planc-dev/planc/interop/migrate"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
)

// importCommand returns planc import.
func importCommand(a *app) *cobra.Command {
	var f jobFlags
	var define []string
	var out string
	c := &cobra.Command{
		Use:   "import FORMAT FILE...",
		Short: "turn another trainer's file into a job with its plan pinned",
		Long: `import reads the file of another trainer and prints a job of planc: its model, its recipe, and its plan as
pins. Each field says the key and the line that it comes from. Notes name the keys that are not in the job, and why.
"planc help formats" lists the values of FORMAT. What the file lacks can be given by the flags of the job, such as
--cluster. -o writes the job to a file.`,
		Example: "planc import megatron run.sh --cluster dgx-h100 --nodes 8 -o planc.yaml",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return inputErrorf(BadFlag, "", "%s needs a FORMAT and a FILE, such as: planc import megatron run.sh",
					c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := migrate.FormatOf(args[0]); err != nil {
				return err
			}
			source, err := readSource(a.Console, args[1:], args[0], define, &f)
			if err != nil {
				return err
			}
			return importJob(a.Console, source, f.overrides(), out)
		},
	}
	c.ValidArgsFunction = formatThen(formats.Imported, anyFile)
	f.register(c)
	registerRead(c, &define)
	c.Flags().StringVarP(&out, "output", "o", "", "write the job to `FILE`, which must not exist yet")
	return c
}

// importJob prints or writes the job of a source. A job that only lacks fields is complete enough: a note names them.
func importJob(ui *console.Console, source *migrate.Source, overrides []spec.Override, out string) error {
	for _, n := range source.Notes {
		ui.Notef("note: %s", n)
	}
	_, err := source.Question(ui.Read, overrides...)
	var diags ir.Diags
	if errors.As(byFlags("", err), &diags) {
		for _, d := range diags {
			if d.Code != spec.Missing {
				return diags
			}
			ui.Notef("note: %s", d.Msg)
		}
	} else if err != nil {
		return err
	}
	for _, note := range source.NotTaken() {
		ui.Notef("note: %s", note)
	}
	source.Add(ui.Read, overrides...)
	if out == "" {
		return ui.Print(string(source.JobText()))
	}
	return writeNewFile(ui, out, string(source.JobText()), "planc explain "+shell.QuotePath(out))
}

// exportCommand returns planc export.
func exportCommand(a *app) *cobra.Command {
	var f jobFlags
	var define []string
	var out string
	var like []string
	c := &cobra.Command{
		Use:   "export FORMAT [JOB]",
		Short: "write a plan as another trainer's file",
		Long: `export writes the job's plan as a file of another trainer or of a launcher ("planc help formats" lists them).
It searches the plans that this trainer can run, unless the job names an engine or has a lock. A plan that the trainer
cannot run is refused, with the best plan that it can. --like edits a file of yours: comments, order and everything
that the plan does not decide stay. --like for each of several files that belong together, such as an Accelerate
configuration and its ds_config.json, prints a patch of them.`,
		Example: "planc export megatron --model llama3-8b --cluster dgx-h100 --global-batch 128 --seq-len 8192\n" +
			"planc export megatron planc.yaml --like run.sh -o better.sh",
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return inputErrorf(BadFlag, "", "%s needs a FORMAT; planc help formats lists them", c.CommandPath())
			case len(args) > 2:
				return oneJob(c, args[1:])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			format, err := migrate.FormatOf(args[0])
			if err != nil {
				return err
			}
			e, err := exportJob(a, format, args[1:], f, like, define)
			if err != nil {
				return err
			}
			for _, note := range e.Notes {
				a.Notef("note: %s", note)
			}
			if out == "" {
				return a.Print(string(e.Text))
			}
			next := checkOf(format, out, e.Text, e.job)
			if len(like) > 1 {
				next = applied(e.Text, out)
			}
			return writeNewFile(a.Console, out, string(e.Text), next)
		},
	}
	c.ValidArgsFunction = formatThen(formats.Written, jobArg)
	f.register(c)
	registerRead(c, &define)
	c.Flags().StringArrayVar(&like, "like", nil,
		"change only the plan in `FILE`, a file of yours; repeatable: files that belong together give a patch")
	c.Flags().StringVarP(&out, "output", "o", "", "write to `FILE`, which must not exist yet")
	return c
}

// checkOf returns the command that checks an exported file, with the flags for what the file does not say; "" if planc
// does not read files of its format.
func checkOf(format *interop.Format, out string, text []byte, j *loaded) string {
	if format.Import == nil {
		return ""
	}
	command := "planc check " + shell.QuotePath(out)
	s, err := migrate.Read([]interop.File{{Name: out, Data: text}}, format.Name,
		interop.Options{Devices: j.Hardware.Devices()})
	if err != nil {
		return command
	}
	add := func(key, flag, value string) {
		if !s.Has(key) {
			command += " " + flag + " " + shell.QuotePath(value)
		}
	}
	model := j.Config.Name
	if !slices.Contains(spec.ModelNames(), model) {
		model = "MODEL"
	}
	add("model", "--model", model)
	add("train.seq_len", "--seq-len", strconv.Itoa(j.Train.SeqLen))
	add("train.global_batch", "--global-batch", strconv.Itoa(j.Train.GlobalBatch))
	if s.Has("cluster") {
		return command
	}
	if c := j.Cluster; c.Count > 0 {
		return command + fmt.Sprintf(" --cluster %dx%s", c.Count, shell.QuotePath(c.Node))
	}
	command += " --cluster " + shell.QuotePath(j.Cluster.Node)
	if n := j.Hardware.Nodes; n > 1 {
		command += fmt.Sprintf(" --nodes %d", n)
	}
	return command
}

// noJob returns the error of an export without a job that edits a file, with what to type; nil if there is a job.
func noJob(args []string, f *jobFlags, format *interop.Format, like []string) error {
	if len(like) == 0 || len(args) > 0 || f.cmd.Flags().Changed("model") || !missing(jobFile) {
		return nil
	}
	var paths []string
	for _, name := range like {
		paths = append(paths, shell.QuotePath(name))
	}
	return inputErrorf(spec.NoFile, "", "there is no %s here, and planc export writes the plan of a job; "+
		"planc check %s --edit best edits the file for its best plan, and planc import %s "+
		"%[2]s -o %[1]s writes its job", jobFile, strings.Join(paths, " "), format.Name)
}

// exported is another trainer's file for the plan of a job.
type exported struct {
	*migrate.Exported
	job *loaded
}

// exportJob returns the file of a format for a job's plan.
func exportJob(a *app, format *interop.Format, args []string, f jobFlags, like []string,
	define []string) (*exported, error) {
	options, err := readOptions(define)
	if err != nil {
		return nil, err
	}
	options.Read = a.Read
	if err := noJob(args, &f, format, like); err != nil {
		return nil, err
	}
	files, err := readFiles(a.Console, like)
	if err != nil {
		return nil, err
	}
	j, err := loadForExport(a.Console, args, f, &exportFiles{format, files, options})
	if err != nil {
		return nil, err
	}
	found, err := askPlan(a, j, lockFlags{})
	if diags := (ir.Diags)(nil); errors.As(err, &diags) && diags[0].Code == search.BadPlan {
		return nil, migrate.RefusedPins(format, j.Question, files, options, diags)
	}
	if err != nil {
		return nil, err
	}
	if found.NoPlan != nil {
		return nil, newJobNoPlanError(found.job, found.NoPlan, false)
	}
	plan := found.Best.Plan
	if !found.IsGiven {
		plan, err = migrate.Best(format, found.Question, plan, files, options)
		if err != nil {
			return nil, err
		}
	}
	out, err := migrate.Export(format, found.Question, plan, files, options)
	if err != nil {
		return nil, err
	}
	return &exported{out, found.job}, nil
}

// applied returns the command that applies a patch in a file; "" if there is none.
func applied(patch []byte, file string) string {
	if command := shell.Patch(string(patch)); command != "" {
		return command + " < " + shell.QuotePath(file)
	}
	return ""
}

// exportFiles are a format and the user's files in it that an export edits.
type exportFiles struct {
	format  *interop.Format
	files   []interop.File // none: the export writes a whole file
	options interop.Options
}

// loadForExport reads the job that is exported. Unless the job or its lock says them, the engine is the format's, and
// the precision is that of the user's files.
func loadForExport(ui *console.Console, args []string, f jobFlags, to *exportFiles) (*loaded, error) {
	j, err := readJob(ui, args, f)
	if err != nil {
		return nil, err
	}
	var sets []string
	if j.path == "" || j.path == "-" || missing(lock.PathOf(j.path)) {
		sets, err = to.settings(j)
		if err != nil {
			return nil, err
		}
	}
	if len(sets) > 0 {
		f.set = append(f.set, sets...)
		j, err = readJob(ui, args, f)
		if err != nil {
			return nil, err
		}
	}
	j.printNotes(ui)
	return j, nil
}

// settings returns what an export sets in a job that does not say it, as arguments of --set.
func (e *exportFiles) settings(j *loaded) (sets []string, err error) {
	if e.format.Engine != "" && !j.Has("train.engine") {
		if len(e.files) > 0 {
			if err := migrate.CheckLike(e.format, e.files, e.options); err != nil {
				return nil, err
			}
		}
		sets = append(sets, "train.engine="+e.format.Engine)
	}
	if len(e.files) == 0 || j.Has("train.precision") {
		return sets, nil
	}
	precision, err := migrate.Precision(e.format, e.files, e.options)
	return append(sets, precision...), err
}
