package ckpt

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Listed is a checkpoint of a folder. Its manifest is read, and its other files are not verified.
type Listed struct {
	Path     string
	Step     int64     // of its name
	Saved    time.Time // when the manifest was written
	Manifest Manifest
	Err      error // why it is not a checkpoint: an InputError, or a failure to read it
}

// List returns the checkpoints of a folder, newest step first. A folder that does not exist has none.
func List(dir string) (all []Listed, err error) {
	names, err := steps(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		step, old, _ := parseStep(name)
		if old {
			continue
		}
		l := Listed{Path: Join(dir, name), Step: step}
		l.Manifest, l.Err = readManifest(l.Path)
		l.Saved = modified(Join(l.Path, manifestName))
		all = append(all, l)
	}
	return all, nil
}

// modified returns when a file was written; the zero time if that is unknown.
func modified(name string) time.Time {
	if IsURL(name) {
		all, _ := objects(parent(name))
		return all[manifestName]
	}
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Size returns the bytes of its files, without the manifest.
func (l *Listed) Size() (total int64) {
	for _, f := range l.Manifest.Files {
		total += f.Size
	}
	return total
}

// ValidLoss returns the validation loss after the checkpoint's step; NaN if it was not measured.
func (l *Listed) ValidLoss() float64 {
	loss, err := strconv.ParseFloat(l.Manifest.Extra[ValidLossExtra], 64)
	if err != nil {
		return math.NaN()
	}
	return loss
}

// readManifest reads the manifest of a checkpoint and verifies it, but not the other files.
func readManifest(path string) (Manifest, error) {
	b, err := readSmall(Join(path, manifestName), maxManifest)
	if absent(err) {
		return Manifest{}, inputf("%s has no %s: it is not a checkpoint, or saving it did not finish", path,
			manifestName)
	}
	if err != nil {
		return Manifest{}, reading(err)
	}
	m, err := decodeManifest(b)
	if bad := (*InputError)(nil); errors.As(err, &bad) {
		return Manifest{}, inputf("%s", Join(path, bad.Msg))
	}
	if err != nil {
		return Manifest{}, err
	}
	if step, _, ok := parseStep(filepath.Base(path)); ok && step != m.Step {
		return Manifest{}, inputf("%s holds step %d: it was renamed", path, m.Step)
	}
	return m, nil
}
