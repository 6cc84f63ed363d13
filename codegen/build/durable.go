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

// Replace writes a file so that readers see the old content or the new one, never a part, also after a power cut: the
// content is synced under a random new name and then renamed. It follows no link, neither at path nor at the name that
// it writes under.
func Replace(path string, perm fs.FileMode, fill func(io.Writer) error) error {
	f, err := createPartial(path, perm)
	if err != nil {
		return err
	}
	err = errors.Join(fill(f), syncFile(f))
	err = errors.Join(err, f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := rename(f.Name(), path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// ReplaceBytes is [Replace] by these bytes.
func ReplaceBytes(path string, data []byte, perm fs.FileMode) error {
	return Replace(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// createPartial creates the file that becomes path. Nobody can predict its name, and with O_EXCL no file or link that
// is already there is written through.
func createPartial(path string, perm fs.FileMode) (*os.File, error) {
	name := path + "." + strings.ToLower(rand.Text()[:10]) + ".partial"
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
}

// rename moves a synced file, and syncs the folder, so that the name is as durable as the content.
func rename(from, to string) error {
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

// seal makes a cached file, which another process wrote as partial, durable, and writes its digest. A file without its
// digest is no cache entry, so that the order of the two renames does not matter.
func seal(partial, file string, perm fs.FileMode) error {
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

// sealed reports whether a cached file is there and is the one that was sealed.
func sealed(file string) bool {
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
