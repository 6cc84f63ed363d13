package ckpt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
)

// cleanObjects is Clean in a store.
func cleanObjects(dir string) (aside []string, err error) {
	b, key, err := openBucket(dir)
	if err != nil {
		return nil, err
	}
	if err := b.RemoveUploads(folderKey(key)); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	all, err := objects(dir)
	if err != nil {
		return nil, err
	}
	var errs []error
	for name := range all {
		folder, isMark := strings.CutSuffix(name, "/"+markName)
		if !isMark || !ofStep(folder) {
			continue
		}
		if _, isComplete := all[folder+"/"+manifestName]; isComplete {
			errs = append(errs, b.Remove(folderKey(key)+name))
		} else {
			errs = append(errs, bucketFS{}.RemoveAll(Join(dir, folder)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	names, err := steps(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, old, _ := parseStep(name); old {
			to, err := restore(bucketFS{}, Join(dir, name))
			if err != nil {
				return aside, err
			}
			if to != "" {
				aside = append(aside, to)
			}
		}
	}
	return aside, nil
}

// ofStep reports whether a folder has the name of a checkpoint, also of one that is being replaced or was set aside.
func ofStep(name string) bool {
	name, _, _ = strings.Cut(name, asideSuffix)
	_, _, ok := parseStep(name)
	return ok
}

// lockObjects checks that a folder of a store can be written. A store has no locks.
func lockObjects(dir string) (release func(), err error) {
	b, key, err := openBucket(dir)
	if err != nil {
		return nil, err
	}
	probe := ".probe-" + rand.Text()[:randomLen]
	err = bucketFS{}.Mkdir(Join(dir, probe))
	if err == nil {
		err = b.Remove(folderKey(key) + probe + "/" + markName)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: cannot write in %s: %w", dir, err)
	}
	return func() {}, nil
}
