package ckpt

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Checkpoints may be in a bucket of an S3-compatible store. A folder is then a URL such as s3://bucket/prefix, and a
// file is an object. A store has no folders and no rename, so that the order of requests takes their place: a
// checkpoint is complete when it has its manifest, which is written last and removed first.

// Bucket is a bucket of an object store. Errors name the object. If an object does not exist, they are fs.ErrNotExist.
type Bucket interface {
	List(prefix string) ([]ObjectInfo, error) // objects whose keys begin with prefix, in any order
	Open(key string) (ObjectReader, int64, error)
	// Create begins to write an object of size bytes. It appears when Sync returns. Close without Sync leaves nothing.
	Create(key string, size int64) (ObjectWriter, error)
	Copy(from, to string) error
	Remove(key string) error           // no error if it does not exist
	RemoveUploads(prefix string) error // of objects that were not finished
}

// ObjectInfo is an object of a list.
type ObjectInfo struct {
	Key      string
	Modified time.Time
}

// ObjectReader reads an object.
type ObjectReader interface {
	io.Reader
	io.ReaderAt
	io.Closer
}

// ObjectWriter writes an object.
type ObjectWriter interface {
	io.WriteCloser
	Sync() error
}

// OpenBucket connects to a bucket. The package s3 sets it; nil: the program is not linked with it.
var OpenBucket func(name string) (Bucket, error)

const scheme = "s3://"

// IsURL reports whether a folder is in an object store.
func IsURL(dir string) bool { return strings.HasPrefix(dir, scheme) }

// Join returns the path of a file in a folder of a disk or store.
func Join(dir, name string) string {
	if IsURL(dir) {
		return strings.TrimRight(dir, "/") + "/" + name
	}
	return filepath.Join(dir, name)
}

// parent returns the folder of a file.
func parent(name string) string {
	if IsURL(name) {
		return scheme + path.Dir(strings.TrimPrefix(name, scheme))
	}
	return filepath.Dir(name)
}

// openBucket returns the bucket of a URL, and the rest of the URL, which is a key or the beginning of keys.
func openBucket(url string) (Bucket, string, error) {
	name, key, _ := strings.Cut(strings.TrimPrefix(url, scheme), "/")
	if name == "" {
		return nil, "", inputf("%s names no bucket; it must be s3://BUCKET/PREFIX", url)
	}
	if OpenBucket == nil {
		return nil, "", inputf("%s: this binary has no client of object stores; compile it with planc compile --with-s3",
			url)
	}
	b, err := OpenBucket(name)
	if err != nil {
		return nil, "", fmt.Errorf("checkpoint: %s: %w", url, err)
	}
	return b, strings.Trim(key, "/"), nil
}

// folderKey returns what the keys of the objects in a folder begin with.
func folderKey(key string) string {
	if key == "" {
		return ""
	}
	return key + "/"
}

// objects lists the objects in a folder: their names relative to it, and when they were written.
func objects(dir string) (map[string]time.Time, error) {
	b, key, err := openBucket(dir)
	if err != nil {
		return nil, err
	}
	list, err := b.List(folderKey(key))
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	all := map[string]time.Time{}
	for _, o := range list {
		all[strings.TrimPrefix(o.Key, folderKey(key))] = o.Modified
	}
	return all, nil
}

// openObject opens an object for reading.
func openObject(url string) (ObjectReader, int64, error) {
	b, key, err := openBucket(url)
	if err != nil {
		return nil, 0, err
	}
	return b.Open(key)
}

// isPresent reports whether a file or folder exists.
func isPresent(name string) (bool, error) {
	if !IsURL(name) {
		return exists(name), nil
	}
	all, err := objects(name)
	return len(all) > 0, err
}

// markName is an object in a folder that is being written or removed. If the folder has no manifest, its objects are
// leftovers, which Clean removes.
const markName = ".partial"

// bucketFS is the operations of Save in a store.
type bucketFS struct{}

func (bucketFS) MkdirAll(string) error { return nil }
func (bucketFS) SyncDir(string) error  { return nil }

// Mkdir marks a folder.
func (b bucketFS) Mkdir(dir string) error {
	f, err := b.Create(Join(dir, markName))
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (bucketFS) Create(url string) (syncFile, error) { return &objectFile{url: url}, nil }

// Rename copies the objects of a folder, the manifest last, and removes the folder.
func (b bucketFS) Rename(from, to string) error {
	all, err := objects(from)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s: %w", from, fs.ErrNotExist)
	}
	if err := b.Mkdir(to); err != nil {
		return err
	}
	bucket, source, err := openBucket(from)
	if err != nil {
		return err
	}
	_, target, err := openBucket(to)
	if err != nil {
		return err
	}
	_, isComplete := all[manifestName]
	delete(all, manifestName)
	delete(all, markName)
	for name := range all {
		if err := bucket.Copy(source+"/"+name, target+"/"+name); err != nil {
			return err
		}
	}
	if isComplete {
		if err := bucket.Copy(source+"/"+manifestName, target+"/"+manifestName); err != nil {
			return err
		}
	}
	if err := bucket.Remove(target + "/" + markName); err != nil {
		return err
	}
	return b.RemoveAll(from)
}

// RemoveAll removes a folder: at first its manifest, and at last its mark.
func (b bucketFS) RemoveAll(dir string) error {
	all, err := objects(dir)
	if err != nil || len(all) == 0 {
		return err
	}
	if err := b.Mkdir(dir); err != nil {
		return err
	}
	bucket, key, err := openBucket(dir)
	if err != nil {
		return err
	}
	if _, ok := all[manifestName]; ok {
		if err := bucket.Remove(key + "/" + manifestName); err != nil {
			return err
		}
	}
	for name := range all {
		if name == manifestName || name == markName {
			continue
		}
		if err := bucket.Remove(key + "/" + name); err != nil {
			return err
		}
	}
	return bucket.Remove(key + "/" + markName)
}

// objectFile writes an object whose size is known when the first byte is written.
type objectFile struct {
	url  string
	size int64
	w    ObjectWriter
}

// setSize announces how many bytes will be written.
func (f *objectFile) setSize(n int64) { f.size = n }

func (f *objectFile) open() (err error) {
	if f.w == nil {
		var b Bucket
		var key string
		b, key, err = openBucket(f.url)
		if err == nil {
			f.w, err = b.Create(key, f.size)
		}
	}
	return err
}

func (f *objectFile) Write(p []byte) (int, error) {
	if err := f.open(); err != nil {
		return 0, err
	}
	return f.w.Write(p)
}

func (f *objectFile) Sync() error {
	if err := f.open(); err != nil {
		return err
	}
	return f.w.Sync()
}

func (f *objectFile) Close() error {
	if f.w == nil {
		return nil
	}
	return f.w.Close()
}

// saveObjects is Save in a store. An older checkpoint of the same step is first copied to a name that Newest finds.
func saveObjects(dir string, m Manifest, contents []Content) (Saved, error) {
	out, err := writeObjects(dir, m, contents)
	if err != nil {
		return Saved{}, explain(dir, m.Step, size(contents), err)
	}
	return out, nil
}

func writeObjects(dir string, m Manifest, contents []Content) (Saved, error) {
	fsys := bucketFS{}
	out := Saved{Path: Join(dir, stepName(m.Step))}
	old := out.Path + oldSuffix
	found, err := objects(out.Path)
	if err != nil {
		return out, err
	}
	_, replace := found[manifestName]
	if _, isLeftover := found[markName]; !replace && isLeftover {
		err := fsys.RemoveAll(out.Path)
		if err != nil {
			return out, err
		}
	} else {
		replace = len(found) > 0
	}
	if replace {
		isOld, err := isPresent(old)
		if err == nil && isOld {
			_, err = setAside(fsys, old, out.Path)
		}
		if err == nil {
			err = fsys.Rename(out.Path, old)
		}
		if err != nil {
			return out, err
		}
	}
	if err := writeAll(fsys, out.Path, m, contents); err != nil {
		fsys.RemoveAll(out.Path) // as far as possible; Clean removes the rest
		return out, err
	}
	if b, key, err := openBucket(out.Path); err == nil {
		b.Remove(key + "/" + markName) // the checkpoint is complete with it too
	}
	if replace {
		out.Aside, err = setAside(fsys, old, out.Path)
	}
	return out, err
}
