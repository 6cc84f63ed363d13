package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/passes/search/price"
	"github.com/planc-dev/planc/planner"

	"github.com/planc-dev/planc/cmd/planc/internal/screen"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/costmodel"
)

func explainCommand(a *app) *cobra.Command {
	var flags jobFlags
	var locks lockFlags
	var whyNot, run string
	c := &cobra.Command{
		Use:   "explain [JOB]",
		Short: "explain the plan: its limits, alternatives and what-ifs",
		Long: `explain says what limits the plan, compares the value of each key with its runner-up, and shows where time
and memory go. --why-not searches the best plan with the given values, and compares it with the chosen plan, part by
part. If no plan can have these values, it names the rules that forbid them; if none fits, the bytes that are missing.
rest=kept among the values changes only those values. If the lock next to the job holds, its plan is explained;
otherwise the difference is shown too.

--analyze compares the prediction with a run of the plan, part by part. It predicts at the rates of the job's cluster
file or of the catalogue, as planc calibrate --from does, never at rates measured here. It fits them to the run, and
says whether another plan would then be better.`,
		Example: "planc explain planc.yaml --why-not tp=4,sp=false",
		Args:    oneJob,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("analyze") {
				if c.Flags().Changed("why-not") {
					return inputErrorf(BadFlag, "", "--analyze and --why-not are two questions: ask one of them")
				}
				return analyze(a, args, flags, locks, run)
			}
			as := answer{lock: locks, screen: screen.Explain,
				complete: func(d *screen.Document, found *decision) (err error) {
					addExplanation(a.Console, d, found, true)
					d.Head.Stages, err = stageTimes(found.Question, d.Plan.Plan)
					return err
				}}
			if c.Flags().Changed("why-not") {
				restriction, err := parseRestriction(whyNot)
				if err != nil {
					return err
				}
				as.screen, as.complete = screen.WhyNot, func(d *screen.Document, found *decision) error {
					addExplanation(a.Console, d, found, a.json)
					return a.RunSearches(func() error { return d.AskWhyNot(restriction) })
				}
			}
			return answerJob(a, args, flags, as)
		},
	}
	flags.register(c)
	c.Flags().StringVar(&whyNot, "why-not", "",
		"compare with the best plan that has `KEY=VALUE,...`; other keys are free")
	c.Flags().StringVar(&run, "analyze", "", "compare with the measurements of a `RUN`: its folder, or metrics.jsonl")
	flags.registerSave(c)
	locks.register(c)
	a.jsonFlag(c)
	return c
}

// analyze compares the job's plan with a run of it, part by part.
func analyze(a *app, args []string, flags jobFlags, locks lockFlags, run string) error {
	// not the rates measured here: the run may be of another machine, and calibrate's file has the catalogue's
	j, err := loadJob(a.Console, args, flags)
	if err != nil {
		return err
	}
	r, err := readRun(a, j, run)
	if err != nil {
		return err
	}
	found, err := askPlan(a, j, locks)
	if err != nil {
		return err
	}
	if r.plan != "" && r.plan != found.Best.Plan.String() {
		return inputErrorf(NothingMeasured, "", "%s ran the plan %s, and the job's plan is %s; name the job of the "+
			"run, or pin its plan with --set plan.KEY=VALUE", run, r.plan, found.Best.Plan)
	}
	var d *planner.Analysis
	err = a.WatchSearch(func(watch func(search.Progress)) (err error) {
		d, err = planner.Analyze(found.Question, &found.Best, &r.Measurement, watch)
		return err
	})
	if err != nil {
		return toNoPlanError(err)
	}
	d.Planc = version
	if a.json {
		return a.PrintJSON(d)
	}
	words := append([]string{"planc", "calibrate", "--from", shell.QuotePath(run)}, args...)
	return a.Print(screen.Analysis(d, strings.Join(append(words, "-o", "here.yaml"), " ")))
}

// addExplanation adds an explanation to the document. hasLevers asks for levers and rules of thumb, which are searches.
func addExplanation(ui *console.Console, d *screen.Document, found *decision, hasLevers bool) {
	o := planner.ExplainOptions{HasLevers: hasLevers, LockedBatch: found.lock.Batch()}
	_ = ui.RunWithNotice("weighing what would change it", func() error { d.Explain(o); return nil })
	d.Head.Experts = screen.Experts(found.Best.Plan, price.ExpertsOf(found.Question.Problem(), found.Best.Plan))
}

// stageTimes returns the busy time of each stage of the chosen plan; nil if there is only one stage.
func stageTimes(q *planner.Question, plan ir.Plan) ([]costmodel.Seconds, error) {
	if plan.PP < 2 {
		return nil, nil
	}
	return price.StageTimes(q.Problem(), plan)
}

// parseRestriction parses the value of --why-not: tp=4,sp=false,rest=kept. Keys and values are those of the job's plan.
func parseRestriction(text string) (planner.Restriction, error) {
	var r planner.Restriction
	var pins spec.Pins
	doc, diags := strict.New(), ir.Diags{}
	seen := map[string]bool{}
	for _, part := range outsideBrackets(text) {
		key, value, _ := strings.Cut(part, "=")
		key = strings.TrimPrefix(key, "plan.")
		switch {
		case value == "" || value == "null":
			diags = append(diags, ir.Diag{Code: BadFlag,
				Msg: fmt.Sprintf("--why-not %s: write KEY=VALUE, such as tp=4 or tp=4,rest=kept", part)})
		case key == "rest":
			r.IsRestKept = value == "kept"
			if value != "kept" && value != "free" {
				diags = append(diags, ir.Diag{Code: BadFlag, Fix: "rest=kept",
					Msg: fmt.Sprintf("--why-not rest=%s: rest must be kept or free", value)})
			}
		case seen[key]:
			diags = append(diags, ir.Diag{Code: BadFlag, Fix: key + "=[...]",
				Msg: fmt.Sprintf("--why-not %s: %s is given twice; a list allows several values", part, key)})
		case jobPlace(key) != "":
			at := jobPlace(key)
			diags = append(diags, ir.Diag{Code: strict.UnknownKey, Msg: fmt.Sprintf(
				"--why-not %s: %s is a field of the job, not of the plan; planc plan --set %s=%s plans the job "+
					"with it", part,
				at, at, value)})
		default:
			seen[key] = true
			diags = append(diags, doc.Set(spec.Override{Key: key, Value: value, Shown: "--why-not " + part}, nil)...)
		}
	}
	diags = append(diags, doc.Decode(&pins)...)
	pins.Own(&diags, func(string) ir.Pos { return ir.Pos{} })
	r.Pins = search.PinsOf(&pins)
	if len(r.Pins) == 0 && len(diags) == 0 {
		return r, inputErrorf(BadFlag, "", "--why-not rest=... changes no key of the plan: add one, such as tp=4")
	}
	return r, diags.Err()
}

// jobPlace returns the path of a key in the job that the plan does not have; "" if there is none, or several.
func jobPlace(key string) string {
	last := key[strings.LastIndexByte(key, '.')+1:]
	if slices.Contains(strict.Keys(reflect.TypeFor[spec.Pins]()), last) {
		return ""
	}
	places := slices.DeleteFunc(strict.Places(reflect.TypeFor[spec.Job](), last), func(p string) bool {
		return key != last && p != key
	})
	if len(places) != 1 {
		return ""
	}
	return places[0]
}

// outsideBrackets splits a text at the commas that are outside of lists.
func outsideBrackets(text string) []string {
	depth := 0
	return strings.Split(strings.Map(func(r rune) rune {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				return 0
			}
		}
		return r
	}, text), "\x00")
}
