package ckpt

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// ValidLossExtra is the key of a manifest's Extra that has the validation loss after the checkpoint's step, in nats per
// token, if it was measured.
const ValidLossExtra = "valid_loss"

// Retention says which checkpoints of a folder are kept: those that any of the rules keeps.
type Retention struct {
	Last  int     // number of newest steps, at least 1
	Every int64   // steps that are multiples of it; 0: none
	Best  int     // number of steps with the lowest validation losses
	Steps []int64 // these steps
}

// Retain removes the checkpoints of a folder that no rule keeps, and returns their paths. It does not read the tensors.
// Folders without a valid manifest, and those that were set aside, are neither counted nor removed. Clean removes what
// an interrupted Retain leaves. No Save may run in the folder at the same time.
func Retain(dir string, keep Retention) (removed []string, err error) {
	return retain(fileSystemOf(dir), dir, keep)
}

func retain(fsys fileSystem, dir string, keep Retention) (removed []string, err error) {
	all, err := List(dir)
	if err != nil {
		return nil, err
	}
	for _, path := range keep.Removes(all) {
		if err := remove(fsys, path); err != nil {
			return removed, fmt.Errorf("checkpoint: cannot remove %s: %w", path, err)
		}
		removed = append(removed, path)
	}
	return removed, nil
}

// Removes returns the paths of the checkpoints that no rule keeps. all lists those of a folder, newest first.
func (keep *Retention) Removes(all []Listed) (paths []string) {
	whole := slices.DeleteFunc(slices.Clone(all), func(l Listed) bool { return l.Err != nil })
	retained := keep.steps(whole)
	for _, l := range whole {
		if !retained[l.Step] {
			paths = append(paths, l.Path)
		}
	}
	return paths
}

// steps returns the steps that are kept. all lists the checkpoints, newest first. Of equal losses the first that was
// reached is the best.
func (keep *Retention) steps(all []Listed) map[int64]bool {
	retained := map[int64]bool{}
	for _, step := range keep.Steps {
		retained[step] = true
	}
	for i, s := range all {
		if i < keep.Last || keep.Every > 0 && s.Step%keep.Every == 0 {
			retained[s.Step] = true
		}
	}
	best := slices.DeleteFunc(slices.Clone(all), func(l Listed) bool { return math.IsNaN(l.ValidLoss()) })
	slices.SortFunc(best, func(a, b Listed) int {
		return cmp.Or(cmp.Compare(a.ValidLoss(), b.ValidLoss()), cmp.Compare(a.Step, b.Step))
	})
	for _, s := range best[:min(keep.Best, len(best))] {
		retained[s.Step] = true
	}
	return retained
}

// remove removes a checkpoint. At every moment its folder either has its name and all its files, or a name of a
// leftover.
func remove(fsys fileSystem, path string) error {
	if IsURL(path) {
		return fsys.RemoveAll(path)
	}
	dir, name := filepath.Split(path)
	tmp := filepath.Join(dir, tmpPrefix+name+"-removed")
	if err := fsys.RemoveAll(tmp); err != nil {
		return err
	}
	if err := fsys.Rename(path, tmp); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil // somebody else removed it
		}
		return err
	}
	if err := fsys.SyncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return fsys.RemoveAll(tmp)
}
