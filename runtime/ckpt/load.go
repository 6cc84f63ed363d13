package ckpt

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Checkpoint is a verified checkpoint.
type Checkpoint struct {
	Path     string // its folder
	Manifest Manifest
}

// Open reads a checkpoint's manifest and verifies every file against it. Damaged or missing files, or a folder that is
// not a checkpoint, are an InputError that names the file.
func Open(path string) (*Checkpoint, error) {
	m, err := readManifest(path)
	if err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		if err := verify(Join(path, f.Name), f); err != nil {
			return nil, err
		}
	}
	return &Checkpoint{Path: path, Manifest: m}, nil
}

// File opens one of the checkpoint's files.
func (c *Checkpoint) File(name string) (*File, error) {
	if !slices.ContainsFunc(c.Manifest.Files, func(f FileInfo) bool { return f.Name == name }) {
		return nil, inputf("%s has no %s", c.Path, name)
	}
	return OpenFile(Join(c.Path, name))
}

// verify checks a file against its entry in the manifest, and that its numbers are finite.
func verify(path string, want FileInfo) error {
	f, size, err := openRegular(path)
	if absent(err) {
		return inputf("%s is missing", path)
	}
	if err != nil {
		return reading(err)
	}
	defer f.Close()
	if size != want.Size {
		return inputf("%s is damaged: it has %d bytes, and %d were saved", path, size, want.Size)
	}
	sum, scan := sha256.New(), &finiteScan{size: size}
	if _, err := io.CopyBuffer(io.MultiWriter(sum, scan), io.LimitReader(f, size+1), make([]byte, 1<<20)); err != nil {
		return reading(err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != want.SHA256 {
		return inputf("%s is damaged: its content is not what was saved (the SHA-256 differs)", path)
	}
	if scan.err != nil {
		return inputf("%s: %v; training cannot continue from it", path, scan.err)
	}
	return nil
}

// Skipped is a checkpoint that cannot be used, and why.
type Skipped struct {
	Path string
	Err  error
}

// Newest verifies the checkpoints of a folder, from the newest step on, and returns the first complete one and those
// that were skipped. The checkpoint is nil if there is none or the folder does not exist. A checkpoint that cannot be
// read may be complete, so Newest then fails rather than return an older one.
func Newest(dir string) (*Checkpoint, []Skipped, error) {
	names, err := steps(dir)
	if err != nil {
		return nil, nil, err
	}
	var skipped []Skipped
	for _, name := range names {
		path := Join(dir, name)
		c, err := Open(path)
		if err == nil {
			return c, skipped, nil
		}
		if bad := (*InputError)(nil); !errors.As(err, &bad) {
			return nil, nil, fmt.Errorf("%w; this checkpoint may be complete, so no older one is used in its "+
				"place: make it readable and "+
				"start again, or continue an older one with --resume STEP", err)
		}
		skipped = append(skipped, Skipped{path, err})
	}
	return nil, skipped, nil
}

// Find returns the verified checkpoint of a step in a folder.
func Find(dir string, step int64) (*Checkpoint, error) {
	names, err := steps(dir)
	if err != nil {
		return nil, err
	}
	var have []int64
	for _, name := range names {
		if n, old, _ := parseStep(name); n == step && !old {
			return Open(Join(dir, name))
		} else if !old {
			have = append(have, n)
		}
	}
	if len(have) == 0 {
		return nil, inputf("there is no checkpoint of step %d in %s, and no other one", step, dir)
	}
	return nil, inputf("there is no checkpoint of step %d in %s; %s", step, dir, stepsThere(have, step))
}

// stepsThere lists the existing steps, newest first. If there are many, it lists those nearest to step.
func stepsThere(have []int64, step int64) string {
	const limit = 10
	all, text := len(have), "existing steps: "
	if all > limit {
		near := slices.Clone(have)
		slices.SortStableFunc(near, func(a, b int64) int { return cmp.Compare(apart(a, step), apart(b, step)) })
		have, text = near[:limit], fmt.Sprintf("the nearest of %d existing steps: ", all)
		slices.SortFunc(have, func(a, b int64) int { return cmp.Compare(b, a) })
	}
	var numbers []string
	for _, n := range have {
		numbers = append(numbers, strconv.FormatInt(n, 10))
	}
	return text + strings.Join(numbers, ", ")
}

func apart(a, b int64) int64 { return max(a-b, b-a) }

// steps returns the names of a folder's checkpoints, newest first.
func steps(dir string) ([]string, error) {
	names, err := namesIn(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, reading(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		_, _, ok := parseStep(name)
		return !ok
	})
	slices.SortFunc(names, func(a, b string) int {
		i, iold, _ := parseStep(a)
		j, jold, _ := parseStep(b)
		switch {
		case i != j:
			return int(max(-1, min(1, j-i)))
		case iold == jold:
			return strings.Compare(a, b)
		case iold:
			return 1
		}
		return -1
	})
	return names, nil
}

// parseStep parses the name of a checkpoint's folder. old reports whether it is being replaced by another one.
func parseStep(name string) (step int64, old, ok bool) {
	digits, ok := strings.CutPrefix(name, "step-")
	if !ok {
		return 0, false, false
	}
	digits, old = strings.CutSuffix(digits, oldSuffix)
	n, err := strconv.ParseUint(digits, 10, 63)
	return int64(n), old, err == nil && stepName(int64(n))+name[len("step-")+len(digits):] == name
}
