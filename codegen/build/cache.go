package build

import (
	"errors"
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

// cacheRoot returns the private folder of all builds, or of all entries of another kind. It creates the folder if
// necessary. An empty parent is planc's folder in the user's cache folder.
func cacheRoot(parent, kind string) (string, error) {
	if parent == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no folder for builds: %w", err)
		}
		parent = filepath.Join(user, "planc")
		if err := os.MkdirAll(user, 0o700); err != nil {
			return "", fmt.Errorf("make the build cache: %w%s", err, elsewhere)
		}
		if err := makePrivate(parent); err != nil {
			return "", err
		}
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", err
	}
	root := filepath.Join(parent, kind)
	for _, dir := range []string{root, filepath.Join(root, "lock")} {
		if err := makePrivate(dir); err != nil {
			return "", err
		}
	}
	return root, nil
}

// SharedCacheError reports that other users can change the build cache. planc run would then start their programs.
type SharedCacheError struct{ Dir, Why string }

func (e *SharedCacheError) Error() string {
	return fmt.Sprintf("the build cache %s %s, so a program found there could be theirs: %s", e.Dir, e.Why, e.Fix())
}

// Fix says how to get a cache that only this user can write.
func (e *SharedCacheError) Fix() string {
	fix := fmt.Sprintf("remove it (rm -r %s)", e.Dir)
	if runtime.GOOS == "linux" {
		fix += ", or set XDG_CACHE_HOME to a folder of your own"
	}
	return fix
}

// makePrivate makes a folder that only this user can enter, whatever the umask, or refuses one that others can write.
func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the build cache: %w%s", err, elsewhere)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("make the build cache: %w%s", err, elsewhere)
	}
	if !info.IsDir() {
		return fmt.Errorf("make the build cache: %s is not a folder: remove it%s", dir, elsewhere)
	}
	if why := othersWrite(info); why != "" {
		return &SharedCacheError{Dir: dir, Why: why}
	}
	if info.Mode().Perm() == 0o700 {
		return nil
	}
	return os.Chmod(dir, 0o700)
}

// elsewhere says how to choose another cache folder if this one cannot be written ([os.UserCacheDir]).
var elsewhere = map[string]string{"linux": "; XDG_CACHE_HOME names another folder for it"}[runtime.GOOS]

// CacheFolder returns the folder of builds in the user's cache folder, and creates it if necessary.
func CacheFolder() (string, error) { return cacheRoot("", "build") }

// touch marks a build as just used. Errors are harmless and ignored.
func touch(dir string) {
	now := time.Now()
	_ = os.Chtimes(dir, now, now)
}

// lock keeps other processes from a build until unlock is called. Keys with the same beginning share a lock. Lock files
// are never removed, because that would be a race.
func lock(root, key string) (unlock func(), err error) {
	file := filepath.Join(root, "lock", key[:min(2, len(key))])
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600) // lockedfile would create it for all users
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return lockedfile.MutexAt(file).Lock()
}

// trim removes the least recently used builds beyond keep. Errors are harmless and ignored. The caller must hold no
// lock.
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

// remove removes a build unless it was used in the meantime.
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

// install copies the binary to r.Out, completely or not at all. It copies and does not link, because a tool that
// rewrites the user's binary must not change the cache.
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
	err = Replace(out, 0o777, func(w io.Writer) error {
		src, err := os.Open(binary)
		if err != nil {
			return err
		}
		defer src.Close()
		_, err = io.Copy(w, src)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("write the binary: %w", err)
	}
	return out, nil
}

// MeasuredFolder returns the folder of measurements of this machine in the user's cache folder, and creates it if
// necessary.
func MeasuredFolder() (string, error) { return cacheRoot("", "measured") }
