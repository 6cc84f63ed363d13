package main

import (
	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
)

func (a *app) explainCommand() *cobra.Command {
	var flags jobFlags
	var locks lockFlags
	var whyNot string
	c := &cobra.Command{
		Use:   "explain [JOB]",
		Short: "why this plan, what else was considered, what would change it",
		Long: "explain says what limits the plan, shows each choice with its runner-up, and where time and memory " +
			"go. With\n" +
			"--why-not it puts the best plan with other values, all else free, beside the chosen one, part by " +
			"part; or it\n" +
			"names what forbids it: rules of legality, or bytes over. rest=kept among the values changes " +
			"only those.\n" +
			"The plan is that of the lock beside the job, if it holds; else the difference is shown too.",
		Example: "planc explain planc.yaml --why-not tp=4,sp=false",
		Args:    oneJob,
		RunE: func(c *cobra.Command, args []string) error {
			as := answer{lock: locks, screen: explainScreen,
				complete: func(j *loaded, d *document, found *decision) (err error) {
					a.explain(j, d, found, true)
					d.head.stages, err = j.stages(d)
					return err
				}}
			if c.Flags().Changed("why-not") {
				restriction, err := parseRestriction(whyNot)
				if err != nil {
					return err
				}
				as.screen, as.complete = whyNotScreen, func(j *loaded, d *document, found *decision) error {
					a.explain(j, d, found, a.json)
					return a.runSearches(func() error { return d.AskWhyNot(restriction) })
				}
			}
			return a.answer(args, flags, as)
		},
	}
	flags.register(c)
	c.Flags().StringVar(&whyNot, "why-not", "",
		"the best plan with `KEY=VALUE,...`, all else free, against the chosen one")
	flags.registerSave(c)
	locks.register(c)
	a.jsonFlag(c)
	return c
}

// explain adds an explanation to the document. hasLevers asks for levers and rules of thumb, which are searches.
func (a *app) explain(j *loaded, d *document, found *decision, hasLevers bool) {
	o := planner.ExplainOptions{HasLevers: hasLevers, LockedBatch: found.lock.batch()}
	_ = a.runWithNotice("weighing what would change it", func() error { d.Explain(o); return nil })
	d.head.experts = expertsSentence(found.Best.Plan, search.ExpertsOf(j.Problem(), found.Best.Plan))
}
