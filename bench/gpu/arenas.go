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

// checkArena is runtime/gpu's variable of the environment: it names a file, to which each rank adds an arenaUse.
const checkArena = "PLANC_CHECK_ARENA"

// arenaUse is ArenaUse of runtime/gpu, whose comments say what it has.
type arenaUse struct {
	Rank             int
	Planned, Written int64
	Whole            bool
}

// arenaFile is where ranks tell.
func arenaFile() (path string, remove func(), err error) {
	dir, remove, err := scratch()
	return filepath.Join(dir, "arenas"), remove, err
}

// readArenas reads what ranks have told; nothing of those that did not end.
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

// arenaFault says what is wrong with a group's arenas; "" is nothing.
func (l *lawRun) arenaFault() string {
	c := l.Group.Cases[len(l.Group.Cases)-1]
	var most int64
	for _, use := range l.Arenas {
		most = max(most, use.Planned)
		if !use.Whole {
			return fmt.Sprintf("rank %d wrote beyond its arena", use.Rank)
		}
		if use.Written == 0 {
			return fmt.Sprintf("rank %d wrote nothing into its arena", use.Rank)
		}
	}
	if len(l.Arenas) < l.Group.Ranks {
		return fmt.Sprintf("%d of %d ranks told of their arenas", len(l.Arenas), l.Group.Ranks)
	}
	if most != c.Arena {
		return fmt.Sprintf("the largest arena has %d bytes, and the compiler laid out %d", most, c.Arena)
	}
	return ""
}

// arenas is law 3: of each plan that law 1 ran, every rank has taken the arena that the compiler laid out, to the byte,
// and written nothing around it. How far it wrote is told: of a value that a kernel keeps in registers its place may
// stay unused.
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
	r.note("%d plans, %d are off; of %d the last 256 bytes are written", seen, bad, full)
	switch {
	case bad > 0:
		return faultf("%d of %d plans use other memory than was laid out: %s", bad, seen, tail(r.Why, 600))
	case seen == 0:
		return errors.New("no plan has run to its end")
	}
	return nil
}
