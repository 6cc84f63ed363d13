package build

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// keep is how many builds stay in the cache, the most recently used first.
const keep = 20

// cacheRoot is the folder that holds all builds, or all of another kind; it exists afterwards.
func cacheRoot(root, kind string) (string, error) {
	if root == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no folder for builds: %w", err)
		}
		root = filepath.Join(user, "planc", kind)
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	return root, os.MkdirAll(filepath.Join(root, "lock"), 0o777)
}

// CacheFolder is the folder of builds in the user's cache folder; it exists afterwards.
func CacheFolder() (string, error) { return cacheRoot("", "build") }

// touch marks a build as used now. That it fails does no harm.
func touch(dir string) {
	now := time.Now()
	_ = os.Chtimes(dir, now, now)
}

// trim removes the builds that were used longest ago, but for so many.
func trim(root string, keep int) error {
	dirs, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	type build struct {
		dir  string
		used time.Time
	}
	var builds []build
	for _, d := range dirs {
		info, err := d.Info()
		if err == nil && d.Name() != "lock" { // an error: another process has removed it
			builds = append(builds, build{filepath.Join(root, d.Name()), info.ModTime()})
		}
	}
	slices.SortFunc(builds, func(a, b build) int { return cmp.Compare(b.used.UnixNano(), a.used.UnixNano()) })
	for _, b := range builds[min(keep, len(builds)):] {
		if err := os.RemoveAll(b.dir); err != nil {
			return err
		}
	}
	return nil
}

// install copies the binary to r.Out, where it appears whole or not at all. It is a copy, not a link: a tool
// that rewrites the user's binary must not reach into the cache.
func install(binary string, r Request) (string, error) {
	out := r.Out
	if !filepath.IsAbs(out) {
		out = filepath.Join(r.Dir, out)
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(out); err == nil && info.IsDir() {
		return "", fmt.Errorf("write the binary: %s is a folder", out)
	}
	partial := fmt.Sprintf("%s.%d.partial", out, os.Getpid())
	if err := copyFile(partial, binary); err != nil {
		_ = os.Remove(partial)
		return "", fmt.Errorf("write the binary: %w", err)
	}
	return out, os.Rename(partial, out)
}

func copyFile(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o777)
	if err != nil {
		return err
	}
	if _, err := io.Copy(dst, src); err != nil {
		dst.Close()
		return err
	}
	return dst.Close()
}
