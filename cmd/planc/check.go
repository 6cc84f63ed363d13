package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/otherinput"
	"github.com/planc-dev/planc/cmd/planc/internal/process"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/checkscreen"
	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/migrate"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
)

// checkFlags are the flags of planc check in addition to those of the job.
type checkFlags struct {
	job     jobFlags
	define  []string
	format  string
	slower  string
	edit    string
	hasKeys bool
}

// checkCommand returns planc check.
func checkCommand(a *app) *cobra.Command {
	var f checkFlags
	c := &cobra.Command{
		Use:   "check FILE...",
		Short: "check another trainer's file; print what to change",
		Long: `check reads the file of another trainer, such as a script of Megatron-LM, and recognizes its format
("planc help formats" lists them). It says whether the file's plan is legal and fits, how far it is from the best plan
that this trainer can run, and which changes of the file help: one at a time, with what each is worth.

Give what the file lacks by flags: --model, --cluster, --nodes, --global-batch, --seq-len. Several files may belong
together, such as a ds_config.json and a model's config.json, or a script and a file that it sources. Sourced files in
the script's folder are found. - reads standard input.

The exit code is 0 if the plan is legal and fits, 2 if it is illegal, 3 if it does not fit, and 4 if it is slower than
the best plan by more than --fail-slower. With --edit it is 0 if the diff is printed, and 4 if the file's plan is slower
than --fail-slower allows. planc prices neither offload nor adapters: a file that offloads state or
trains adapters gets 0 if what stays on the device fits, and 3 if that does not fit.`,
		Example: "planc check run.sh --cluster dgx-h100 --nodes 8\n" +
			"planc check ds_config.json config.json --cluster dgx-a100 --seq-len 4096 --fail-slower 10%\n" +
			"planc check run.sh --cluster dgx-h100 --edit 1 | patch",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return inputErrorf(BadFlag, "", "%s needs a FILE of another trainer; - reads standard input",
					c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return check(a, c, args, &f) },
	}
	f.job.register(c)
	registerRead(c, &f.define)
	c.ValidArgsFunction = anyFile
	flags := c.Flags()
	flags.StringVar(&f.format, "format", "", "read the files as `FORMAT` instead of recognizing it")
	flags.StringVar(&f.slower, "fail-slower", "",
		"exit with 4 if the plan is slower than the best by more than `PERCENT`, such as 10%")
	flags.StringVar(&f.edit, "edit", "", "print only the diff of edit `N`, or of the best plan (--edit best)")
	flags.BoolVar(&f.hasKeys, "keys", false, "print what every key of the file was taken for")
	a.jsonFlag(c)
	return c
}

// registerRead registers the flags of commands that read files of other trainers.
func registerRead(c *cobra.Command, define *[]string) {
	c.Flags().StringArrayVar(define, "define", nil,
		"give a variable of a script its value: `NAME=VALUE`, or 1=VALUE for its first argument; repeatable")
}

// check runs planc check.
func check(a *app, c *cobra.Command, args []string, f *checkFlags) error {
	limit, err := percentage(c, f.slower)
	if err != nil {
		return err
	}
	source, err := readSource(a.Console, args, f.format, f.define, &f.job)
	if err != nil {
		return err
	}
	q, err := source.Question(a.Read, f.job.overrides()...)
	if err != nil {
		return byFlags("", err)
	}
	var r *migrate.Report
	err = a.RunSearches(func() (err error) { r, err = migrate.NewReport(source, q); return err })
	if err != nil {
		return err
	}
	r.Planc = version
	if limit > 0 {
		r.FailSlower = &migrate.SlowerLimit{Limit: limit, IsExceeded: r.SlowerBy != nil && *r.SlowerBy > limit}
	}
	switch {
	case c.Flags().Changed("edit"):
		if err := printEdit(a, r, f.edit); err != nil {
			return err
		}
		return slowerStatus(a.Console, r)
	case a.json:
		err = a.PrintJSON(r)
	default:
		err = a.Print(checkscreen.Screen(r, checkscreen.Options{HasKeys: f.hasKeys}))
	}
	if err != nil {
		return err
	}
	return checkStatus(a.Console, r)
}

// checkStatus returns the exit status of a report that was printed, after its messages on stderr.
func checkStatus(ui *console.Console, r *migrate.Report) error {
	switch {
	case r.Verdict == planner.CheckIllegal:
		fmt.Fprintln(ui.Stderr, layout.Fold(diagText(r.Diags)))
		return process.ExitStatus(exitInput)
	case r.Verdict == planner.CheckNoFit:
		fmt.Fprintln(ui.Stderr,
			layout.Fold("planc: "+r.Files[0]+": "+lowerFirst(r.Message)+" ["+string(codeNoPlan)+"]"))
		return process.ExitStatus(exitNoFit)
	}
	return slowerStatus(ui, r)
}

// slowerStatus returns the exit status of --fail-slower, after its message on stderr.
func slowerStatus(ui *console.Console, r *migrate.Report) error {
	if r.FailSlower == nil || !r.FailSlower.IsExceeded {
		return nil
	}
	fmt.Fprintln(ui.Stderr, layout.Fold(slowerText(r.Files[0], *r.SlowerBy, r.FailSlower.Limit)))
	return process.ExitStatus(exitLock)
}

// slowerText says that a plan is slower than --fail-slower allows, with more digits if the two percentages look equal.
func slowerText(file string, by, limit float64) string {
	percent, allowed := quantity.Percent(by), quantity.Percent(limit)
	if percent == allowed {
		percent, allowed = fmt.Sprintf("%.4f %%", 100*by), fmt.Sprintf("%.4f %%", 100*limit)
	}
	return fmt.Sprintf("planc: %s: the plan is %s slower than the best; --fail-slower allows %s", file, percent,
		allowed)
}

// lowerFirst returns a sentence as part of a message.
func lowerFirst(sentence string) string {
	return strings.ToLower(sentence[:1]) + strings.TrimSuffix(sentence[1:], ".")
}

// editDocument is what planc check --json --edit prints.
type editDocument struct {
	Schema int      `json:"schema"`
	Planc  string   `json:"planc"`
	Format string   `json:"format"`
	Files  []string `json:"files"`
	Edit   string   `json:"edit"` // a number, or best
	Diff   string   `json:"diff"` // unified; "" if the file has the best plan already
	// Remarks say what the diff leaves as it was.
	Remarks []string `json:"diff_remarks"`
}

// printEdit prints the diff of one edit.
func printEdit(a *app, r *migrate.Report, number string) error {
	text, note, remarks := r.Diff, r.DiffNote, r.DiffRemarks
	if number != "best" {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > len(r.Edits) {
			return inputErrorf(BadFlag, "", "planc check --edit is %q; it must be %sbest", number,
				numbersOf(r.Edits))
		}
		text, note, remarks = r.EditDiff(n - 1)
	}
	file := r.Files[0]
	if file == "-" {
		file = "standard input"
	}
	switch {
	case note != "":
		return inputErrorf(migrate.CannotExport, "", "%s cannot be edited: %s", file, note)
	case r.Best == nil && text == "":
		return inputErrorf(migrate.CannotExport, "", "%s cannot be edited: there is no best plan, because %s", file,
			checkscreen.NoBest(r))
	case a.json:
		return a.PrintJSON(editDocument{1, version, r.Format, r.Files, number, text, remarks})
	case text == "":
		a.Notef("%s has the best plan already", file)
		return nil
	}
	for _, remark := range remarks {
		a.Notef("note: %s", remark)
	}
	return a.Print(text)
}

// numbersOf returns the numbers that --edit takes in front of "best".
func numbersOf(edits []migrate.Edit) string {
	switch n := len(edits); n {
	case 0:
		return ""
	case 1:
		return "1, or "
	default:
		return fmt.Sprintf("1 to %d, or ", n)
	}
}

// percentage parses a percentage or a fraction: 10%, 0.1. It is 0 if the flag is not given.
func percentage(c *cobra.Command, text string) (float64, error) {
	if !c.Flags().Changed("fail-slower") {
		return 0, nil
	}
	number, isPercent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) || !isPercent && v >= 1 {
		return 0, inputErrorf(BadFlag, "", "%s --fail-slower is %q; it must be a percentage above 0, such as 10%%",
			c.CommandPath(), text)
	}
	if isPercent {
		v /= 100
	}
	return v, nil
}

// readSource reads files of another trainer.
func readSource(ui *console.Console, names []string, format string, define []string,
	f *jobFlags) (*migrate.Source, error) {
	options, err := readOptions(define)
	if err != nil {
		return nil, err
	}
	files, err := readFiles(ui, names)
	if err != nil {
		return nil, err
	}
	s, err := migrate.ReadFor(files, format, options, ui.Read, f.overrides())
	var diags ir.Diags
	if errors.As(err, &diags) && diags[0].Code == migrate.UnknownFormat && isJob(files[0]) {
		return nil, inputErrorf(otherinput.NotAJob, "", "%s is a job of planc, and FILE must be another trainer's "+
			"file; "+
			"planc explain %s checks its plan", files[0].Name, shell.QuotePath(names[0]))
	}
	return s, err
}

// readFiles reads files of other trainers.
func readFiles(ui *console.Console, names []string) (files []interop.File, err error) {
	for _, name := range names {
		data, err := ui.Read(name)
		if err != nil {
			return nil, ir.Diags{{Pos: ir.Pos{File: shell.Slashed(name)}, Code: spec.NoFile,
				Msg: "the file cannot be read: " + ir.FileReason(err)}}
		}
		files = append(files, interop.File{Name: shell.Slashed(name), Data: data})
	}
	return files, nil
}

// isJob reports whether a file is a job of planc.
func isJob(f interop.File) bool {
	doc, _ := strict.Parse(f.Name, f.Data)
	if doc.Root == nil || doc.Root.Kind != strict.Map {
		return false
	}
	return slices.ContainsFunc([]string{"model", "cluster", "train"}, func(k string) bool {
		return doc.Root.Get(k) != nil
	})
}

// readOptions parses the values of --define.
func readOptions(define []string) (o interop.Options, err error) {
	for _, text := range define {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return o, inputErrorf(BadFlag, "", "--define %s must be NAME=VALUE", text)
		}
		if o.Define == nil {
			o.Define = map[string]string{}
		}
		o.Define[name] = value
	}
	return o, nil
}
