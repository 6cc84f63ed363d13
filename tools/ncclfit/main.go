package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/planc-dev/planc/costmodel"
)

const page = "../docs/communication.md"

func main() {
	update := flag.Bool("update", false, "write the tables of "+page)
	flag.Parse()
	if err := run(*update); err != nil {
		fmt.Fprintln(os.Stderr, "ncclfit:", err)
		os.Exit(1)
	}
}

func run(update bool) error {
	s, err := newStudy()
	if err != nil {
		return err
	}
	tables := s.tables()
	for _, name := range tableNames {
		fmt.Printf("%s\n\n%s\n", name, tables[name])
	}
	if !update {
		return nil
	}
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text, err := fill(string(old), tables)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(text), 0o644)
}

// study has all results of the page.
type study struct {
	clusters map[string]*costmodel.Cluster
	rows     []row
	skipped  map[string]int
	fitted   []float64            // best values
	apart    map[string][]float64 // values without each platform that has others of its kind
}

func newStudy() (*study, error) {
	s := &study{clusters: map[string]*costmodel.Cluster{}, apart: map[string][]float64{}}
	var err error
	s.rows, s.skipped, err = load(s.clusters)
	if err != nil {
		return nil, err
	}
	s.fitted, err = newProblem(s.clusters, s.rows, "").fit()
	if err != nil {
		return nil, err
	}
	for _, p := range platforms {
		if p.kin {
			s.apart[p.name], err = newProblem(s.clusters, s.rows, p.name).fit()
			if err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}
