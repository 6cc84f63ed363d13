package ckpttools

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/ckpt"
)

// A FlagError reports flags or arguments that are wrong.
type FlagError struct{ Msg string }

func (e *FlagError) Error() string { return e.Msg }

func flagError(format string, args ...any) error { return &FlagError{fmt.Sprintf(format, args...)} }

// checkpointsFolder returns the folder of checkpoints that a user names: itself, or the folder of a run.
func checkpointsFolder(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", flagError("there is no folder %s; name the folder of a run, such as runs/opticks, or its "+
			"checkpoints/", dir)
	}
	if !info.IsDir() {
		return "", flagError("%s is a file; name the folder of a run, or its checkpoints/", dir)
	}
	if inner := filepath.Join(dir, "checkpoints"); isFolder(inner) {
		return inner, nil
	}
	return dir, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// list returns the checkpoints of a folder, at least one.
func list(dir string) (folder string, all []ckpt.Listed, err error) {
	folder, err = checkpointsFolder(dir)
	if err != nil {
		return "", nil, err
	}
	all, err = ckpt.List(folder)
	if err == nil && len(all) == 0 {
		err = flagError("%s has no checkpoint: its folders would be named step-00000042", folder)
	}
	return folder, all, err
}

// find returns the folder of the checkpoint that a user names: its own folder, or that of the newest one in a folder.
func find(path string) (string, error) {
	if isCheckpoint(path) {
		return path, nil
	}
	_, all, err := list(path)
	if err != nil {
		return "", err
	}
	return all[0].Path, nil
}

// openNamed finds, verifies and opens the checkpoint that a user names.
func openNamed(ui *console.Console, name string) (*ckpt.Checkpoint, error) {
	path, err := find(name)
	if err != nil {
		return nil, err
	}
	defer ui.WatchWork(func() string { return "verifying " + path + " ..." })()
	return ckpt.Open(path)
}

// isCheckpoint reports whether a path names one checkpoint, complete or not.
func isCheckpoint(path string) bool {
	_, err := os.Stat(filepath.Join(path, "manifest.json"))
	return err == nil || strings.HasPrefix(filepath.Base(path), "step-")
}

// Row is a checkpoint, as --json prints it.
type Row struct {
	Path      string     `json:"path"`
	Step      int64      `json:"step"`
	Saved     *time.Time `json:"saved"` // null if there is no manifest
	Bytes     int64      `json:"bytes"`
	Tokens    int64      `json:"tokens"`
	ValidLoss *float64   `json:"valid_loss"` // null if it was not measured after the step
	Plan      string     `json:"plan"`
	Error     string     `json:"error,omitempty"` // why it cannot be used
}

func newRow(l *ckpt.Listed) Row {
	r := Row{Path: l.Path, Step: l.Step, Bytes: l.Size(), Tokens: l.Manifest.Tokens, Plan: l.Manifest.Plan}
	if !l.Saved.IsZero() {
		saved := l.Saved.UTC().Truncate(time.Second)
		r.Saved = &saved
	}
	if loss := l.ValidLoss(); !math.IsNaN(loss) {
		r.ValidLoss = &loss
	}
	if l.Err != nil {
		r.Error = strings.TrimPrefix(l.Err.Error(), "checkpoint: ")
	}
	return r
}

func (r *Row) cells() []string {
	saved, loss := "", ""
	if r.Saved != nil {
		saved = r.Saved.Format("2006-01-02 15:04:05")
	}
	if r.ValidLoss != nil {
		loss = fmt.Sprintf("%.4f", *r.ValidLoss)
	}
	if r.Error != "" {
		return []string{fmt.Sprint(r.Step), saved, "", "", loss, r.Error}
	}
	return []string{fmt.Sprint(r.Step), saved, quantity.Count(r.Tokens), quantity.Bytes(r.Bytes), loss, r.Plan}
}

// Listing is the checkpoints of a folder.
type Listing struct {
	Folder string `json:"folder"`
	Rows   []Row  `json:"checkpoints"` // newest first
}

// List lists the checkpoints of a run. It reads their manifests only.
func List(_ context.Context, _ *console.Console, args []string) (*Listing, error) {
	folder, all, err := list(args[0])
	if err != nil {
		return nil, err
	}
	l := &Listing{Folder: folder}
	for i := range all {
		l.Rows = append(l.Rows, newRow(&all[i]))
	}
	return l, nil
}

// Screen formats the result.
func (l *Listing) Screen() string { return l.Folder + "\n\n" + table(l.Rows) }

func table(rows []Row) string {
	cells := make([][]string, len(rows))
	for i := range rows {
		cells[i] = rows[i].cells()
	}
	return layout.Table([]layout.Column{layout.Right("STEP"), layout.Left("SAVED (UTC)"), layout.Right("TOKENS"),
		layout.Right("SIZE"), layout.Right("VALID LOSS"), layout.Left("PLAN")}, cells)
}

// Verified is the result of verifying checkpoints.
type Verified struct {
	Rows []Row `json:"checkpoints"`
}

// Verify reads every file of checkpoints and compares it with the manifest. A folder stands for all its checkpoints.
func Verify(ctx context.Context, ui *console.Console, args []string) (*Verified, error) {
	var paths []string
	for _, arg := range args {
		if isCheckpoint(arg) {
			paths = append(paths, arg)
			continue
		}
		_, all, err := list(arg)
		if err != nil {
			return nil, err
		}
		for _, l := range all {
			paths = append(paths, l.Path)
		}
	}
	v := &Verified{}
	for _, path := range paths {
		if ctx.Err() != nil {
			return nil, errStopped
		}
		row, err := verify(ui, path)
		if err != nil {
			return nil, err
		}
		v.Rows = append(v.Rows, row)
	}
	return v, nil
}

// errStopped reports that the user has stopped planc.
var errStopped = errors.New("stopped")

// verify verifies one checkpoint. A failure to read it is an error, because the checkpoint may be complete.
func verify(ui *console.Console, path string) (Row, error) {
	defer ui.WatchWork(func() string { return "verifying " + path + " ..." })()
	c, err := ckpt.Open(path)
	if bad := (*ckpt.InputError)(nil); errors.As(err, &bad) {
		return Row{Path: path, Error: strings.TrimPrefix(bad.Msg, "checkpoint: ")}, nil
	}
	if err != nil {
		return Row{}, err
	}
	return newRow(&ckpt.Listed{Path: path, Step: c.Manifest.Step, Manifest: c.Manifest}), nil
}

// Damaged returns how many checkpoints are damaged.
func (v *Verified) Damaged() (n int) {
	for _, r := range v.Rows {
		if r.Error != "" {
			n++
		}
	}
	return n
}

// Screen formats the result.
func (v *Verified) Screen() string {
	var b strings.Builder
	for _, r := range v.Rows {
		if r.Error != "" {
			b.WriteString(layout.Prose("damaged   ", 10, r.Error))
			continue
		}
		b.WriteString(layout.Prose("complete  ", 10, fmt.Sprintf("%s, %s", r.Path, quantity.Bytes(r.Bytes))))
	}
	return b.String()
}

// Prune says which checkpoints of a folder are kept.
type Prune struct {
	Last, Best int
	Every      int64
	DryRun     bool
}

// Pruned is what Prune removed.
type Pruned struct {
	Folder  string   `json:"folder"`
	Removed []string `json:"removed"`
	Bytes   int64    `json:"bytes"` // of those
	Left    int      `json:"left"`
	DryRun  bool     `json:"dry_run"`
}

// Run removes the checkpoints that no rule keeps. It locks the folder against runs.
func (p *Prune) Run(_ context.Context, ui *console.Console, dir string) (*Pruned, error) {
	if p.Last < 1 || p.Every < 0 || p.Best < 0 {
		return nil, flagError("--keep-last is %d; it must be at least 1, because the newest checkpoint is what a run "+
			"resumes", p.Last)
	}
	folder, _, err := list(dir)
	if err != nil {
		return nil, err
	}
	unlock, err := ckpt.Lock(folder)
	if errors.Is(err, ckpt.ErrLocked) {
		return nil, flagError("a run is saving its checkpoints in %s; wait until it ends, or set "+
			"train.checkpoint.keep_last in its job", folder)
	}
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := ckpt.List(folder)
	if err != nil {
		return nil, err
	}
	keep := ckpt.Retention{Last: p.Last, Every: p.Every, Best: p.Best}
	out := &Pruned{Folder: folder, DryRun: p.DryRun, Removed: keep.Removes(all)}
	sizes := map[string]int64{}
	for i := range all {
		sizes[all[i].Path] = all[i].Size()
	}
	if !p.DryRun {
		end := ui.WatchWork(func() string { return "removing checkpoints ..." })
		out.Removed, err = ckpt.Retain(folder, keep)
		end()
	}
	for _, path := range out.Removed {
		out.Bytes += sizes[path]
	}
	out.Left = len(all) - len(out.Removed)
	return out, err
}

// Screen formats the result.
func (p *Pruned) Screen() string {
	verb := "removed"
	if p.DryRun {
		verb = "would remove"
	}
	var b strings.Builder
	for _, path := range p.Removed {
		fmt.Fprintf(&b, "%s  %s\n", verb, path)
	}
	fmt.Fprintf(&b, "%s %s, %s; %d left\n", verb, counted(len(p.Removed), "checkpoint"), quantity.Bytes(p.Bytes),
		p.Left)
	return b.String()
}

// counted returns a number with its noun: "1 tensor", "2 tensors".
func counted(n int, word string) string { return fmt.Sprintf("%d %s", n, layout.Plural(n, word)) }
