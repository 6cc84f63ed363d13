// Command validate fits the cost model's constants to published runs, and writes the report on its errors.
//
//	go run ./validate           write docs/validation.md, its plots, and costmodel/engines/errorbars.go
//	go run ./validate fit       fit all constants, or those that are named, and print them; write nothing
//	go run ./validate sum       print the report's figures; write nothing
//
// It runs in the folder tools. The tables are in validate/rows, each row with its source. Tables in heldOut are in no
// fit, neither of constants nor of error bars.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/planc-dev/planc/passes/validate"
)

// heldOut are the tables that are in no fit. Rows whose note forbids it are in no fit either.
var heldOut = []string{"torchtitan.csv", "bigscience_v100.csv", "nvidia_nemo.csv"}

// tables are all rows.
type tables struct{ rows []validate.Row }

// unseen reports whether a row is in no fit.
func (t *tables) unseen(r *validate.Row) bool { return slices.Contains(heldOut, r.File) || r.Barred() }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	t, err := read(filepath.Join("validate", "rows"))
	if err != nil {
		return err
	}
	switch {
	case len(args) > 0 && args[0] == "fit":
		return fit(t, args[1:], 3, os.Stdout)
	case len(args) > 0 && args[0] == "sum":
		s := studyOf(t)
		fmt.Println(s.targets(), bySource(s.fitted), bySource(s.held), bySource(s.barred), memoryBySource(s.report))
		return nil
	}
	return report(t, "..")
}

// read reads every table of a folder.
func read(dir string) (*tables, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	if err != nil {
		return nil, err
	}
	t := &tables{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		rows, err := validate.Parse(filepath.Base(file), data)
		if err != nil {
			return nil, err
		}
		t.rows = append(t.rows, rows...)
	}
	return t, nil
}
