package build

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
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
	if err := os.MkdirAll(filepath.Join(root, "lock"), 0o777); err != nil {
		return "", fmt.Errorf("make the build cache: %w%s", err, elsewhere)
	}
	return root, nil
}

// elsewhere is how a user gets another cache, where this one cannot be written ([os.UserCacheDir]).
var elsewhere = map[string]string{"linux": "; XDG_CACHE_HOME names another folder for it"}[runtime.GOOS]

// CacheFolder is the folder of builds in the user's cache folder; it exists afterwards.
func CacheFolder() (string, error) { return cacheRoot("", "build") }

// touch marks a build as used now. That it fails does no harm.
func touch(dir string) {
	now := time.Now()
	_ = os.Chtimes(dir, now, now)
}

// lock keeps others from a build until unlock is called. A lock is shared by the keys that begin alike, and never removed:
// removing it would be a race.
func lock(root, key string) (unlock func(), err error) {
	return lockedfile.MutexAt(filepath.Join(root, "lock", key[:min(2, len(key))])).Lock()
}

// trim removes the builds that were used longest ago, but for so many. That it fails does no harm. The caller holds no lock.
func trim(root string, keep int) {
	dirs, err := os.ReadDir(root)
	if err != nil {
		return
	}
	var builds []fs.FileInfo
	for _, d := range dirs {
		info, err := d.Info()
		if err == nil && d.Name() != "lock" { // an error: another process has removed it
			builds = append(builds, info)
		}
	}
	slices.SortFunc(builds, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, b := range builds[min(keep, len(builds)):] {
		remove(root, b)
	}
}

// remove removes a build that nobody has used since it was looked at.
func remove(root string, b fs.FileInfo) {
	unlock, err := lock(root, b.Name())
	if err != nil {
		return
	}
	defer unlock()
	dir := filepath.Join(root, b.Name())
	if now, err := os.Stat(dir); err == nil && now.ModTime().Equal(b.ModTime()) {
		_ = os.RemoveAll(dir)
	}
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
