package main

import "github.com/spf13/cobra"

func (a *app) explainCommand() *cobra.Command {
	var flags jobFlags
	c := &cobra.Command{
		Use:   "explain [JOB]",
		Short: "why this plan, what else was considered, what would change it",
		Args:  oneJob,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.answer(args, flags, explained, explainScreen)
		},
	}
	flags.register(c)
	c.Flags().BoolVar(&a.json, "json", a.json, "print one JSON document")
	return c
}
