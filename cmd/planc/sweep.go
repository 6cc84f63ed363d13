package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/cmd/planc/internal/screen"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
)

// maxSweep is the largest number of values of one sweep, and largestSwept the largest value.
const maxSweep, largestSwept = 256, 1 << 20

// parseSweep parses the value of --sweep: gpus=8..1024 or gpus=8,16,24. A key may be written as in a job:
// train.seq_len.
func parseSweep(text string) (planner.Sweep, error) {
	key, list, _ := strings.Cut(text, "=")
	key = strings.TrimPrefix(key, "train.")
	s := planner.Sweep{Key: key}
	keys := planner.SweepKeys()
	if !slices.Contains(keys, key) {
		return s, inputErrorf(BadFlag, ir.Nearest(key, keys),
			"--sweep %s: %s cannot be swept; keys are %s, as in gpus=8..1024 or gpus=8,16,24", text, key,
			strings.Join(keys, ", "))
	}
	wrong := func(what string) error {
		return inputErrorf(BadFlag, "", "--sweep %s: %s; it is written as %s=8..1024 or %s=8,16,24", text,
			what, key, key)
	}
	lo, hi, isRange := strings.Cut(list, "..")
	if isRange {
		var ok, also bool
		s.From, ok = count(lo)
		s.To, also = count(hi)
		if ok && also && s.From > s.To {
			return s, wrong(fmt.Sprintf("%q runs backwards, from %d to %d", list, s.From, s.To))
		}
		if !ok || !also {
			return s, wrong(fmt.Sprintf("%q is no range of numbers from 1 to %d", list, largestSwept))
		}
		return s, nil
	}
	for _, word := range strings.Split(list, ",") {
		n, ok := count(word)
		if !ok {
			return s, wrong(fmt.Sprintf("%q is no number from 1 to %d", word, largestSwept))
		}
		s.Values = append(s.Values, n)
	}
	slices.Sort(s.Values)
	s.Values = slices.Compact(s.Values)
	if len(s.Values) > maxSweep {
		return s, wrong(fmt.Sprintf("%d values are more than %d", len(s.Values), maxSweep))
	}
	return s, nil
}

// count parses a value of a sweep.
func count(word string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(word))
	return n, err == nil && n > 0 && n <= largestSwept
}

// runSweep answers a job for each value of a sweep.
func runSweep(ui *console.Console, j *loaded, s planner.Sweep) (*screen.SweepDocument, error) {
	var found *planner.SweepDocument
	err := ui.RunSearches(func() (err error) {
		found, err = planner.RunSweep(j.Question, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	d := screen.NewSweepDocument(j.Question, s, found)
	d.Planc = version
	for _, note := range d.Notes {
		ui.Notef("note: %s", note)
	}
	return d, nil
}

// sweepJob runs plan --sweep.
func sweepJob(a *app, args []string, f jobFlags, text string) error {
	s, err := parseSweep(text)
	if err != nil {
		return err
	}
	if f.cmd.Flags().Changed("top") {
		return inputErrorf(BadFlag, "", "%s takes --sweep or --top: a sweep has one row for each value",
			f.cmd.CommandPath())
	}
	for _, flag := range []string{"update", "locked"} {
		if f.cmd.Flags().Changed(flag) {
			return inputErrorf(BadFlag, "",
				"%s takes --sweep or --%s: a lock holds one plan, and a sweep finds one for each value",
				f.cmd.CommandPath(), flag)
		}
	}
	j, err := loadJobHere(a.Console, args, f)
	if err == nil && j.Objective.Kind != spec.Throughput {
		err = inputErrorf(BadFlag, "", "--sweep shows the fastest plan of each size, but objective %s chooses "+
			"one size: "+
			"drop --sweep, or the objective with --set objective=null", j.Objective.Kind)
	}
	if err == nil {
		err = saveJob(a.Console, j, f)
	}
	if err != nil {
		return err
	}
	if len(s.ValuesFor(j.Question)) == 0 {
		return inputErrorf(BadFlag, "",
			"--sweep %s=%d..%d: no number of devices in it is a whole number of nodes: %s has %d each", s.Key, s.From,
			s.To, j.Hardware.Name, j.FullNode())
	}
	d, err := runSweep(a.Console, j, s)
	if err != nil {
		return err
	}
	if a.json {
		err = a.PrintJSON(d)
	} else {
		err = a.Print(screen.Sweep(d))
		text := fmt.Sprintf("%s %s in %s: %s", quantity.Count(d.Searches), layout.Plural(d.Searches, "search"),
			quantity.Seconds(d.Search.Seconds), screen.SearchSentence(d.Search))
		a.Notef("%s", strings.TrimSuffix(layout.Prose("", 0, text), "\n"))
	}
	if err == nil && d.First() == nil {
		err = &noPlanError{shown: true, message: fmt.Sprintf("no plan fits: %s, at %s", j.Config.Name,
			noneOf(s.Key, d.Rows))}
	}
	return err
}

// noneOf returns words for the values of a sweep if nothing fits: "gpus=12", "none of 3 values of gpus".
func noneOf(key string, rows []planner.SweepRow) string {
	if len(rows) == 1 {
		return fmt.Sprintf("%s=%d", key, rows[0].Value)
	}
	return fmt.Sprintf("none of %d values of %s", len(rows), key)
}
