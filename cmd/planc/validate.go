package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/cmd/planc/internal/screen"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/validate"
)

// NothingPriced is reported if no row of the tables can be priced.
//
// Example:
//
//	planc validate testdata/unpriced.csv
const NothingPriced ir.Code = "NothingPriced"

func validateCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "validate ROWS.csv...",
		Short: "compare predictions with measured runs",
		Long: `validate predicts each run in a table of measured runs and compares the prediction with the measurement:
seconds per step or tokens per second, memory per GPU, and whether the run fits. Columns are found by name, in any
order (planc help rows lists them). Empty cells take defaults. Rows that cannot be predicted are listed with the
reason.`,
		Example: "planc validate runs.csv --json",
		Args:    cobra.ArbitraryArgs,
		RunE:    func(_ *cobra.Command, args []string) error { return validateTables(a, args) },
	}
	a.jsonFlag(c)
	return c
}

func validateTables(a *app, files []string) error {
	if len(files) == 0 {
		return inputErrorf(spec.NoFile, "", "planc validate needs a table of measured runs: planc validate ROWS.csv")
	}
	var rows []validate.Row
	for _, file := range files {
		data, err := a.Read(file)
		if err != nil {
			return ir.Diags{{Pos: ir.Pos{File: file}, Code: spec.NoFile,
				Msg: fmt.Sprintf("the table cannot be read: %v", ir.FileReason(err))}}.Err()
		}
		more, err := validate.Parse(file, data)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	var r *validate.Report
	err := a.RunWithNotice("pricing rows", func() error { r = validate.Run(rows); return nil })
	if err != nil {
		return err
	}
	if a.json {
		err = a.PrintJSON(r)
	} else {
		err = a.Print(screen.Validation(r))
	}
	if err == nil && len(r.Rows) == 0 {
		return inputErrorf(NothingPriced, "", "none of the %d %s can be priced%s; %s", len(rows),
			layout.Plural(len(rows), "row"),
			firstReason(r), columnsHelp)
	}
	return err
}

// columnsHelp says how to list the columns of a table.
const columnsHelp = "planc help rows lists the columns"

// rowsScreen formats `planc help rows`: the columns of tables of measured runs.
func rowsScreen() string {
	var b strings.Builder
	b.WriteString(layout.Prose("", 0, "planc validate and planc calibrate --from read tables of measured runs: CSV "+
		"files whose "+
		"first line names the columns, in any order. Other columns are ignored. Each row needs the columns marked x, "+
		"and one of those marked +."))
	const at = 34
	b.WriteString("\n" + layout.Pad("COLUMN", at) + "MEANING\n")
	for _, c := range validate.Columns {
		mark := map[string]string{"yes": "x", "one of": "+"}[c.Need]
		b.WriteString(layout.Prose(layout.Pad(layout.Pad(mark, 2)+c.Name, at), at, cmp.Or(c.Doc, c.Name)))
	}
	return b.String()
}

func firstReason(r *validate.Report) string {
	if len(r.Skipped) == 0 {
		return ""
	}
	s := r.Skipped[0]
	return fmt.Sprintf("; row %d of %s: %s", s.Row, s.File, s.Reason)
}
