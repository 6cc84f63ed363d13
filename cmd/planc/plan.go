package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/checkscreen"
	"github.com/planc-dev/planc/cmd/planc/internal/screen"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/planner"
)

func planCommand(a *app) *cobra.Command {
	var flags jobFlags
	var locks lockFlags
	var swept, compared string
	top := screen.DefaultRows
	c := &cobra.Command{
		Use:   "plan [JOB]",
		Short: "find the best plan; print its step time and memory",
		Long: `plan finds the fastest plan that fits. Predictions cannot distinguish plans within 2 % of each other. Among
those it recommends the plan with the least memory pressure, then the simplest; objective.prefer=fastest recommends
the fastest. It prints the plan's step time and memory, the best alternative for each key of the plan (also those that
do not fit), and how many plans were searched.

If nothing fits, it prints the plan that comes nearest, and changes of the job that would fit, cheapest hardware first.
Changes that keep the cluster come first: dropping pins, headroom 0.05, a narrower precision, and without a network half
the batch or half the sequence length. Then come more devices or nodes, ordered by the price of the cluster, or by the
number of devices if it has no price.

If the lock next to the job holds, its plan is shown. If the job has changed since the lock was written, the
difference is shown. The lock is only written with --update.`,
		Example: "planc plan --model llama3-8b --cluster dgx-h100 --global-batch 128 --seq-len 8192\n" +
			"planc plan planc.yaml --sweep gpus=8..1024\n" +
			"planc plan planc.yaml --engines planc,megatron,fsdp,deepspeed",
		Args: oneJob,
		RunE: func(c *cobra.Command, args []string) error {
			if top < 0 {
				return inputErrorf(BadFlag, "", "%s --top is %d; it must be 0 or more", c.CommandPath(), top)
			}
			if locks.update && locks.locked {
				return inputErrorf(BadFlag, "",
					"%s --update writes the lock and --locked forbids that; use one of them",
					c.CommandPath())
			}
			if c.Flags().Changed("engines") {
				return compareEngines(a, args, flags, strings.Split(compared, ","))
			}
			if c.Flags().Changed("sweep") {
				return sweepJob(a, args, flags, swept)
			}
			limited := c.Flags().Changed("top")
			return answerJob(a, args, flags, answer{lock: locks, screen: screen.Plan, brief: true,
				complete: func(d *screen.Document, _ *decision) error {
					d.FindFaster()
					d.Head.Rows = top
					if limited {
						d.Alternatives = d.Shown()
					}
					return nil
				}})
		},
	}
	flags.register(c)
	c.Flags().IntVar(&top, "top", top, "print at most `N` alternatives")
	c.Flags().StringVar(&swept, "sweep", "",
		"find the best plan for each of `KEY=VALUES`: gpus=8..1024 (doubling), or gpus=8,16,24")
	c.Flags().StringVar(&compared, "engines", "",
		"compare the best plans of several `ENGINES`: planc,megatron,fsdp,deepspeed")
	flags.registerSave(c)
	c.Flags().BoolVar(&locks.update, "update", false,
		"search again, write the lock next to the job, and print what changed")
	locks.register(c)
	a.jsonFlag(c)
	return c
}

// compareEngines runs planc plan --engines.
func compareEngines(a *app, args []string, f jobFlags, names []string) error {
	j, err := loadJob(a.Console, args, f)
	if err == nil {
		err = j.CheckFixedHardware()
	}
	if err != nil {
		return err
	}
	var c *planner.EngineComparison
	err = a.RunSearches(func() (err error) { c, err = planner.CompareEngines(j.Question, names); return err })
	if err != nil {
		return byEngines(err)
	}
	c.Planc = version
	if a.json {
		return a.PrintJSON(c)
	}
	return a.Print(checkscreen.Engines(c))
}

// byEngines returns an error of --engines at that flag instead of the override that it sets.
func byEngines(err error) error {
	var diags ir.Diags
	if !errors.As(err, &diags) {
		return err
	}
	diags = slices.Clone(diags)
	for i := range diags {
		if name, ok := strings.CutPrefix(diags[i].Pos.File, "--set train.engine="); ok {
			diags[i].Pos.File = "--engines " + name
		}
		diags[i].Fix = strings.TrimPrefix(diags[i].Fix, "train.engine=")
	}
	return diags
}
