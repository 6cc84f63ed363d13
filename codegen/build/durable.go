package build

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// syncFile is [os.File.Sync]; tests observe it.
var syncFile = (*os.File).Sync

// Replace writes a file atomically: readers see the old or the new content, never a part of it, even after a power
// failure. The content is synced under a random new name, which is then renamed. It follows no link, neither at path
// nor at the temporary name.
func Replace(path string, perm fs.FileMode, write func(io.Writer) error) error {
	f, err := CreatePartial(path, perm)
	if err != nil {
		return err
	}
	err = errors.Join(write(f), syncFile(f))
	err = errors.Join(err, f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := Rename(f.Name(), path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// ReplaceBytes is [Replace] with given content.
func ReplaceBytes(path string, data []byte, perm fs.FileMode) error {
	return Replace(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// CreatePartial creates the file that becomes path. Its name is unpredictable, and O_EXCL keeps it from writing through
// an existing file or link.
func CreatePartial(path string, perm fs.FileMode) (*os.File, error) {
	name := path + "." + strings.ToLower(rand.Text()[:10]) + ".partial"
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
}

// Rename renames a synced file and syncs the folder, so that the name is as durable as the content.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// syncPath syncs a file that another process wrote.
func syncPath(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0) // some systems sync only what is open for writing
	if err != nil {
		return err
	}
	return errors.Join(syncFile(f), f.Close())
}

// digestSuffix ends the name of the file that holds the SHA-256 of a cached file.
const digestSuffix = ".sha256"

// saveWithDigest makes a cached file durable, which another process wrote as partial, and writes its digest. A file
// without a digest is not a cache entry, so that the order of the two renames does not matter.
func saveWithDigest(partial, file string, perm fs.FileMode) error {
	if err := os.Chmod(partial, perm); err != nil {
		return err
	}
	if err := syncPath(partial); err != nil {
		return err
	}
	sum, err := digest(partial)
	if err != nil {
		return err
	}
	if err := os.Rename(partial, file); err != nil {
		return err
	}
	return ReplaceBytes(file+digestSuffix, []byte(sum+"\n"), 0o600)
}

// matchesDigest reports whether a cached file exists and is unchanged since it was sealed.
func matchesDigest(file string) bool {
	want, err := os.ReadFile(file + digestSuffix)
	if err != nil {
		return false
	}
	sum, err := digest(file)
	return err == nil && sum == string(bytes.TrimSpace(want))
}

// digest returns the SHA-256 of a regular file, in hex.
func digest(file string) (string, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
