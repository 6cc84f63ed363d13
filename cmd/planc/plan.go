package main

import "github.com/spf13/cobra"

func (a *app) planCommand() *cobra.Command {
	var flags jobFlags
	c := &cobra.Command{
		Use:   "plan [JOB]",
		Short: "the best plan, its time and memory, and what comes next",
		Args:  oneJob,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.answer(args, flags, func(*document, *decision) {}, planScreen)
		},
	}
	flags.register(c)
	c.Flags().BoolVar(&a.json, "json", a.json, "print one JSON document")
	return c
}
