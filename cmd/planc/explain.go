package main

import (
	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/screen"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
)

func (a *app) explainCommand() *cobra.Command {
	var flags jobFlags
	var locks lockFlags
	var whyNot string
	c := &cobra.Command{
		Use:   "explain [JOB]",
		Short: "explain the plan: its limits, alternatives and what-ifs",
		Long: `explain says what limits the plan, compares the value of each key with its runner-up, and shows where time
and memory go. --why-not searches the best plan with the given values, and compares it with the chosen plan, part by
part. If no plan can have these values, it names the rules that forbid them; if none fits, the bytes that are missing.
rest=kept among the values changes only those values. If the lock next to the job holds, its plan is explained;
otherwise the difference is shown too.`,
		Example: "planc explain planc.yaml --why-not tp=4,sp=false",
		Args:    oneJob,
		RunE: func(c *cobra.Command, args []string) error {
			as := answer{lock: locks, screen: screen.Explain,
				complete: func(j *loaded, d *screen.Document, found *decision) (err error) {
					a.explain(j, d, found, true)
					d.Head.Stages, err = stageTimes(j.Question, d.Plan.Plan)
					return err
				}}
			if c.Flags().Changed("why-not") {
				restriction, err := parseRestriction(whyNot)
				if err != nil {
					return err
				}
				as.screen, as.complete = screen.WhyNot, func(j *loaded, d *screen.Document, found *decision) error {
					a.explain(j, d, found, a.json)
					return a.runSearches(func() error { return d.AskWhyNot(restriction) })
				}
			}
			return a.answer(args, flags, as)
		},
	}
	flags.register(c)
	c.Flags().StringVar(&whyNot, "why-not", "",
		"compare with the best plan that has `KEY=VALUE,...`; other keys are free")
	flags.registerSave(c)
	locks.register(c)
	a.jsonFlag(c)
	return c
}

// explain adds an explanation to the document. hasLevers asks for levers and rules of thumb, which are searches.
func (a *app) explain(j *loaded, d *screen.Document, found *decision, hasLevers bool) {
	o := planner.ExplainOptions{HasLevers: hasLevers, LockedBatch: found.lock.Batch()}
	_ = a.runWithNotice("weighing what would change it", func() error { d.Explain(o); return nil })
	d.Head.Experts = screen.Experts(found.Best.Plan, search.ExpertsOf(j.Problem(), found.Best.Plan))
}

// stageTimes returns the busy time of each stage of the chosen plan; nil if there is only one stage.
func stageTimes(q *planner.Question, plan ir.Plan) ([]costmodel.Seconds, error) {
	if plan.PP < 2 {
		return nil, nil
	}
	return search.Stages(q.Problem(), plan)
}
