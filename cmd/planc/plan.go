package main

import "github.com/spf13/cobra"

func (a *app) planCommand() *cobra.Command {
	var flags jobFlags
	var locks lockFlags
	var swept string
	top := screenRows
	c := &cobra.Command{
		Use:   "plan [JOB]",
		Short: "the best plan, its time and memory, and what comes next",
		Long: "plan finds the fastest plan that fits. Among plans that predictions cannot tell from it, within 2 %, " +
			"it recommends\n" +
			"the one with the least memory pressure, then the simplest; objective.prefer=fastest recommends the " +
			"fastest.\n" +
			"It shows the plan's step and memory, the next best for each other value of a choice (those that do " +
			"not fit\n" +
			"among them), and the count of plans that the answer rests on.\n\nWhere " +
			"nothing fits, it says what is short and what would fit, the cheapest first. Changes that keep the " +
			"cluster come\n" +
			"first: pins given up; headroom 0.05; narrower numbers; if there is no network, half the batch or the " +
			"sequence.\n" +
			"Then come more devices or nodes, by what the cluster costs an hour, or by devices if it has no price.\n" +
			"A lock beside the job holds the plan that is shown; where the job is no longer the lock's, the " +
			"difference is\n" +
			"shown, and nothing is written without --update.",
		Example: "planc plan --model llama3-8b --cluster dgx-h100 --global-batch 128 --seq-len 8192\n" +
			"planc plan planc.yaml --sweep gpus=8..1024",
		Args: oneJob,
		RunE: func(c *cobra.Command, args []string) error {
			if top < 0 {
				return inputErrorf(BadFlag, "", "%s --top is %d; a number of rows is wanted", c.CommandPath(), top)
			}
			if locks.update && locks.locked {
				return inputErrorf(BadFlag, "", "%s --update writes the lock, which --locked forbids", c.CommandPath())
			}
			if c.Flags().Changed("sweep") {
				return a.sweep(args, flags, swept)
			}
			limited := c.Flags().Changed("top")
			return a.answer(args, flags, answer{lock: locks, screen: planScreen, brief: true,
				complete: func(_ *loaded, d *document, _ *decision) error {
					d.FindFaster()
					d.head.rows = top
					if limited {
						d.Alternatives = d.shown()
					}
					return nil
				}})
		},
	}
	flags.register(c)
	c.Flags().IntVar(&top, "top", top, "`N` rows of alternatives, those there are")
	c.Flags().StringVar(&swept, "sweep", "",
		"the best plan for each of `KEY=VALUES`: gpus=8..1024 doubles up to the end, gpus=8,16,24")
	flags.registerSave(c)
	c.Flags().BoolVar(&locks.update, "update", false, "search again, write the lock beside the job, show what changed")
	locks.register(c)
	a.jsonFlag(c)
	return c
}
