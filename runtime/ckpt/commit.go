package ckpt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// commit gives a complete folder its final name. An existing folder of that name is first renamed to a name that Newest
// still finds, and after the commit to the name that commit returns.
func commit(fsys fileSystem, tmp, path string) (aside string, err error) {
	old := path + oldSuffix
	replace := exists(path)
	if replace && exists(old) {
		if _, err := setAside(fsys, old, path); err != nil {
			return "", err
		}
	}
	if replace {
		if err := fsys.Rename(path, old); err != nil {
			return "", err
		}
	}
	if err := fsys.Rename(tmp, path); err != nil {
		if replace {
			fsys.Rename(old, path)
		}
		return "", err
	}
	if err := fsys.SyncDir(filepath.Dir(path)); err != nil || !replace {
		return "", err
	}
	return setAside(fsys, old, path)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// setAside renames a folder to the first unused name after path: path.replaced-1 and so on. A checkpoint that may be
// complete is never removed, because only people can decide that it is not needed.
func setAside(fsys fileSystem, from, path string) (to string, err error) {
	for n := 1; ; n++ {
		to = fmt.Sprintf("%s%s%d", path, asideSuffix, n)
		if is, err := isPresent(to); err != nil {
			return "", err
		} else if !is {
			break
		}
	}
	if err := fsys.Rename(from, to); err != nil {
		return "", err
	}
	return to, fsys.SyncDir(parent(path))
}

// Clean removes what an interrupted Save left in a folder, and completes interrupted replacements. It returns the paths
// of the checkpoints that it set aside. No Save may run in the folder at the same time.
func Clean(dir string) (aside []string, err error) {
	if IsURL(dir) {
		return cleanObjects(dir)
	}
	list, err := os.ReadDir(dir)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var errs []error
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		switch _, old, isStep := parseStep(e.Name()); {
		case strings.HasPrefix(e.Name(), tmpPrefix):
			errs = append(errs, os.RemoveAll(path))
		case isStep && old:
			to, err := restore(osFS{}, path)
			errs = append(errs, err)
			if to != "" {
				aside = append(aside, to)
			}
		}
	}
	return aside, errors.Join(errs...)
}

// restore completes an interrupted replacement. If the new checkpoint is complete, the old one is set aside. If only
// the old one is, it gets its name back, and the other is set aside. If one of them cannot be read, nothing changes.
func restore(fsys fileSystem, old string) (aside string, err error) {
	path := strings.TrimSuffix(old, oldSuffix)
	whole, err := isWhole(path)
	if err != nil {
		return "", err
	}
	if whole {
		return setAside(fsys, old, path)
	}
	whole, err = isWhole(old)
	if err != nil || !whole {
		return "", err // neither is complete: both stay for people to inspect
	}
	is, err := isPresent(path)
	if err != nil {
		return "", err
	}
	if is {
		aside, err = setAside(fsys, path, path)
		if err != nil {
			return "", err
		}
	}
	return aside, fsys.Rename(old, path)
}

// isWhole reports whether a folder is a complete checkpoint. It returns an error if the folder cannot be read.
func isWhole(path string) (bool, error) {
	_, err := Open(path)
	if bad := (*InputError)(nil); errors.As(err, &bad) {
		return false, nil
	}
	return err == nil, err
}
