package main

import "github.com/spf13/cobra"

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
					err = a.explained(j, d, found, true)
					if err == nil {
						d.head.stages, err = j.stages(d)
					}
					return err
				}}
			if c.Flags().Changed("why-not") {
				q, err := parseQuestion(whyNot)
				if err != nil {
					return err
				}
				as.screen, as.complete = whyNotScreen, func(j *loaded, d *document, found *decision) error {
					if err := a.explained(j, d, found, a.json); err != nil {
						return err
					}
					return a.whyNot(j, d, found, q)
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
