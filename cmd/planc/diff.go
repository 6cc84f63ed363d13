package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/shell"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/cmd/planc/internal/screen"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

func diffCommand(a *app) *cobra.Command {
	flags := jobFlags{}
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "compare two jobs or locks: fields, plans, step time and memory",
		Long: `diff prints the fields in which two jobs differ, and then compares their plans, step times and memory. A and
B are job files, folders with a planc.yaml, or locks. The plan of a job is the one that planc plan shows: from its
lock, or from the search. A lock only contains the fields that decide the plan; if A or B is a lock, only those are
compared.`,
		Example: "planc diff planc.yaml other/planc.yaml",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return inputErrorf(BadFlag, "", "%s takes two jobs or locks, but %d are given",
					c.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			flags.cmd = c
			return diffJobs(a, args[0], args[1], flags)
		},
		ValidArgsFunction: jobsArg,
	}
	a.jsonFlag(c)
	return c
}

// diffOperand is one of the two operands of diff: a job or a lock.
type diffOperand struct {
	name    string
	rows    []spec.Row // all fields of a job; nil for a lock
	inputs  lock.Inputs
	decided screen.Side
}

// readOperand reads a job or a lock, and decides its plan.
func readOperand(a *app, arg string, flags jobFlags) (*diffOperand, error) {
	if filepath.Ext(arg) == ".lock" {
		data, err := a.Read(arg)
		if err != nil {
			return nil, ir.Diags{{Pos: ir.Pos{File: arg}, Code: spec.NoFile,
				Msg: "the lock cannot be read: " + ir.FileReason(err)}}
		}
		f, err := lock.Parse(shell.Slashed(arg), data, "planc plan --update")
		if err != nil {
			return nil, err
		}
		return &diffOperand{name: arg, inputs: f.Inputs, decided: screen.Side{Plan: f.Plan, Predict: f.Predict,
			Model: f.CostModel}}, nil
	}
	j, err := loadJob(a.Console, []string{arg}, flags)
	if err != nil {
		return nil, err
	}
	c := &diffOperand{name: j.path, rows: j.Rows(), inputs: lock.InputsOf(j.Question)}
	d, err := askPlan(a, j, lockFlags{})
	var noPlan *noPlanError
	switch {
	case errors.As(err, &noPlan):
		noPlan.message = shell.Slashed(j.path) + ": " + noPlan.message
		return nil, noPlan
	case err != nil:
		return nil, err
	}
	c.decided = screen.Side{Plan: d.Best.Plan, Predict: d.Best.Predict, Model: costmodel.CostModel}
	return c, nil
}

// fieldChanges returns the fields that differ. If one operand is a lock, it compares only fields that decide the plan.
func fieldChanges(a, b *diffOperand) []lock.Change {
	deciding := screen.SignificantChanges(lock.Changes(a.inputs, b.inputs))
	if a.rows == nil || b.rows == nil {
		return deciding
	}
	changes := slices.DeleteFunc(deciding, func(c lock.Change) bool { return c.Section != "cluster" })
	values := map[string][2]string{}
	for i, rows := range [][]spec.Row{a.rows, b.rows} {
		for _, r := range rows {
			v := values[r.Path]
			v[i] = r.Value
			values[r.Path] = v
		}
	}
	for path, v := range values {
		section, key, _ := strings.Cut(path, ".")
		if v[0] != v[1] && section != "cluster" {
			changes = append(changes, lock.Change{Section: section, Key: key, From: v[0], To: v[1]})
		}
	}
	slices.SortFunc(changes, func(x, y lock.Change) int { return cmp.Compare(x.Path(), y.Path()) })
	return changes
}

// diffDoc is the document of diff --json.
type diffDoc struct {
	Schema int         `json:"schema"`
	A      diffSide    `json:"a"`
	B      diffSide    `json:"b"`
	Fields []changeDoc `json:"fields"`
	Plan   []changeDoc `json:"plan_keys"`
}

type diffSide struct {
	Name    string            `json:"name"`
	Plan    map[string]any    `json:"plan"`
	Predict costmodel.Predict `json:"predict"`
}

type changeDoc struct {
	Path string  `json:"path"`
	A    *string `json:"a"` // null if the field is absent
	B    *string `json:"b"`
}

func changeDocs(changes []lock.Change, path func(lock.Change) string) []changeDoc {
	out := []changeDoc{}
	for _, c := range changes {
		row := changeDoc{Path: path(c)}
		if c.From != "" {
			row.A = &c.From
		}
		if c.To != "" {
			row.B = &c.To
		}
		out = append(out, row)
	}
	return out
}

// diffJobs runs planc diff.
func diffJobs(a *app, first, second string, flags jobFlags) error {
	if first == "-" && second == "-" {
		return inputErrorf(BadFlag, "", "planc diff can read only one operand from standard input, and both are -")
	}
	x, err := readOperand(a, first, flags)
	if err != nil {
		return err
	}
	y, err := readOperand(a, second, flags)
	if err != nil {
		return err
	}
	fields := fieldChanges(x, y)
	if !a.json {
		head := fmt.Sprintf("%s -> %s", shell.Slashed(x.name), shell.Slashed(y.name))
		if len(fields) == 0 {
			head += ": the fields are the same"
		}
		return a.Print(screen.NewDifference(head, fields, x.decided, y.decided).Text(""))
	}
	return a.PrintJSON(diffDoc{Schema: 1, A: diffSide{shell.Slashed(x.name), x.decided.Plan.JSON(), x.decided.Predict},
		B:      diffSide{shell.Slashed(y.name), y.decided.Plan.JSON(), y.decided.Predict},
		Fields: changeDocs(fields, lock.Change.Path),
		Plan: changeDocs(lock.PlanChanges(x.decided.Plan, y.decided.Plan), func(c lock.Change) string {
			return c.Key
		})})
}
