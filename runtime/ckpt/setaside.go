package ckpt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// SetAside moves the checkpoints of steps after a step to a new folder next to dir: dir.before-1 and so on. It returns
// that folder and how many it moved.
func SetAside(dir string, after int64) (aside string, moved int, err error) {
	names, err := namesIn(dir)
	if err != nil {
		return "", 0, err
	}
	fsys := fileSystemOf(dir)
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, "step-")
		step, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil || step <= after {
			continue
		}
		if aside == "" {
			aside, err = makeAside(dir)
			if err != nil {
				return "", 0, err
			}
		}
		if err := fsys.Rename(Join(dir, name), Join(aside, name)); err != nil {
			return aside, moved, err
		}
		moved++
	}
	return aside, moved, nil
}

// fileSystemOf returns the operations on the files of a folder.
func fileSystemOf(dir string) fileSystem {
	if IsURL(dir) {
		return bucketFS{}
	}
	return osFS{}
}

// makeAside creates the folder next to dir with the first unused name.
func makeAside(dir string) (string, error) {
	if !IsURL(dir) {
		dir = filepath.Clean(dir)
	}
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.before-%d", strings.TrimRight(dir, "/"), n)
		if IsURL(dir) {
			if is, err := isPresent(aside); err != nil || !is {
				return aside, err
			}
			continue
		}
		if err := os.Mkdir(aside, 0o777); !errors.Is(err, os.ErrExist) {
			return aside, err
		}
	}
}

// namesIn returns the names of the files and folders in a folder, sorted.
func namesIn(dir string) (names []string, err error) {
	if !IsURL(dir) {
		list, err := os.ReadDir(dir)
		for _, e := range list {
			names = append(names, e.Name())
		}
		return names, err
	}
	all, err := objects(dir)
	for name := range all {
		first, _, _ := strings.Cut(name, "/")
		names = append(names, first)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}
