package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// checkArena is an environment variable of runtime/gpu. It names a file to which each rank appends an arenaUse.
const checkArena = "PLANC_CHECK_ARENA"

// arenaUse is the ArenaUse of runtime/gpu, where its fields are documented.
type arenaUse struct {
	Rank             int
	Planned, Written int64
	Whole            bool
}

// arenaFile creates the file to which ranks report.
func arenaFile() (path string, remove func(), err error) {
	dir, remove, err := scratch()
	return filepath.Join(dir, "arenas"), remove, err
}

// readArenas reads the reports of ranks; ranks that did not end have none.
func readArenas(path string) (all []arenaUse) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(text) {
		var use arenaUse
		if json.Unmarshal(line, &use) == nil {
			all = append(all, use)
		}
	}
	return all
}

// arenaFault returns what is wrong with a group's arenas, "" if nothing is.
func (l *lawRun) arenaFault() string {
	c := l.Group.Cases[len(l.Group.Cases)-1]
	var largest int64
	for _, use := range l.Arenas {
		largest = max(largest, use.Planned)
		if !use.Whole {
			return fmt.Sprintf("rank %d wrote beyond its arena", use.Rank)
		}
		if use.Written == 0 {
			return fmt.Sprintf("rank %d wrote nothing into its arena", use.Rank)
		}
	}
	if len(l.Arenas) < l.Group.Ranks {
		return fmt.Sprintf("%d of %d ranks reported their arenas", len(l.Arenas), l.Group.Ranks)
	}
	if largest != c.Arena {
		return fmt.Sprintf("the largest arena has %d bytes, and the compiler laid out %d", largest, c.Arena)
	}
	return ""
}

// arenas checks law 3 on each plan that law 1 ran: every rank used an arena of exactly the size that the compiler
// laid out, and wrote nothing around it. It also reports how far the arena was written; the memory of a value that a
// kernel keeps in registers may stay unused.
func arenas(ctx context.Context, b *bench, r *Result) error {
	if b.runs == nil {
		if err := laws(ctx, b, &Result{}); err != nil && b.runs == nil {
			return err
		}
	}
	r.Columns = []string{"plan", "ranks", "arena, bytes", "written up to", ""}
	bad, seen, full := 0, 0, 0
	for i := range b.runs {
		l := &b.runs[i]
		if !l.ran || l.Broken != "" {
			continue
		}
		seen++
		why := l.arenaFault()
		if why != "" {
			bad++
			r.Why += l.Group.Plan + ": " + why + "; "
		}
		var planned, written int64
		for _, use := range l.Arenas {
			planned, written = max(planned, use.Planned), max(written, use.Written)
		}
		if planned-written < 256 {
			full++
		}
		r.row(l.Group.Plan, fmt.Sprint(l.Group.Ranks), fmt.Sprint(planned), fmt.Sprint(written), why)
	}
	r.note("%d plans, %d with wrong arenas; %d wrote the last 256 bytes", seen, bad, full)
	switch {
	case bad > 0:
		return faultf("%d of %d plans use memory that differs from the layout: %s", bad, seen, tail(r.Why, 600))
	case seen == 0:
		return errors.New("no plan ran to its end")
	}
	return nil
}
