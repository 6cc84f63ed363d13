package ckpt

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// tmpPrefix begins the names of folders that are being written. oldSuffix ends the name of a checkpoint while it is
// being replaced by another of the same step, and asideSuffix, with a number, its name afterwards.
const (
	tmpPrefix   = ".tmp-"
	oldSuffix   = ".old"
	asideSuffix = ".replaced-"
)

// Saved is a committed checkpoint.
type Saved struct {
	Path  string // its folder
	Aside string // new path of an earlier checkpoint of the same step; "" if there was none
}

// Content is one safetensors file of a checkpoint.
type Content struct {
	Name     string // file name, such as model.safetensors
	Tensors  []Tensor
	Metadata map[string]string
	// Fill writes Tensors[i], exactly its bytes. It is called once for each i, in order, and not again after an error.
	Fill func(i int, w io.Writer) error
}

// Save writes a checkpoint of step m.Step to dir. It returns when the checkpoint is durable. If it fails or is killed,
// dir holds what it held before, and at most a leftover that Clean removes. An older checkpoint of the same step is set
// aside.
func Save(dir string, m Manifest, contents []Content) (Saved, error) {
	if IsURL(dir) {
		return saveObjects(dir, m, contents)
	}
	return save(osFS{}, dir, m, contents)
}

func save(fsys fileSystem, dir string, m Manifest, contents []Content) (Saved, error) {
	tmp := filepath.Join(dir, fmt.Sprintf("%s%08d-%s", tmpPrefix, m.Step, rand.Text()[:8]))
	out := Saved{Path: filepath.Join(dir, stepName(m.Step))}
	err := makeDir(fsys, dir)
	if err == nil {
		err = writeAll(fsys, tmp, m, contents)
	}
	if err == nil {
		out.Aside, err = commit(fsys, tmp, out.Path)
	}
	if err != nil {
		fsys.RemoveAll(tmp) // as far as possible; Clean removes the rest
		return Saved{}, explain(dir, m.Step, size(contents), err)
	}
	return out, nil
}

// makeDir creates a folder and its missing parents, and makes their names durable.
func makeDir(fsys fileSystem, dir string) error {
	parents := []string{filepath.Dir(dir)}
	for up := parents[0]; filepath.Dir(up) != up; up = filepath.Dir(up) {
		if _, err := os.Lstat(up); err == nil {
			break
		}
		parents = append(parents, filepath.Dir(up))
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for _, p := range parents {
		fsys.SyncDir(p) // may fail without permission, which does not endanger older names
	}
	return nil
}

// size returns the number of bytes of all tensors with a valid shape.
func size(contents []Content) (total int64) {
	for _, c := range contents {
		for _, t := range c.Tensors {
			n, _ := t.bytes()
			total += n
		}
	}
	return total
}

// writeAll writes all files to a new folder, the manifest last, and makes them durable.
func writeAll(fsys fileSystem, tmp string, m Manifest, contents []Content) error {
	if err := fsys.Mkdir(tmp); err != nil {
		return err
	}
	m.Files = nil
	for _, c := range contents {
		info, err := writeContent(fsys, Join(tmp, c.Name), c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		m.Files = append(m.Files, info)
	}
	manifest, err := m.encode()
	if err != nil {
		return err
	}
	_, err = writeFile(fsys, Join(tmp, manifestName), int64(len(manifest)), func(w io.Writer) error {
		_, err := w.Write(manifest)
		return err
	})
	if err != nil {
		return err
	}
	return fsys.SyncDir(tmp)
}

func writeContent(fsys fileSystem, path string, c Content) (FileInfo, error) {
	header, total, err := encodeHeader(c.Tensors, c.Metadata)
	if err != nil {
		return FileInfo{}, err
	}
	return writeFile(fsys, path, int64(len(header))+total, func(w io.Writer) error {
		tw, err := NewWriter(w, c.Tensors, c.Metadata)
		if err != nil {
			return err
		}
		end := int64(0)
		for i, t := range c.Tensors {
			if err := c.Fill(i, tw); err != nil {
				return err
			}
			end += t.Bytes()
			if tw.Written() != end {
				return fmt.Errorf("tensor %s takes %d bytes, and %d were written", t.Name, t.Bytes(),
					tw.Written()-end+t.Bytes())
			}
		}
		return tw.Close()
	})
}

// writeFile makes a file of size bytes durable and returns its size and hash.
func writeFile(fsys fileSystem, path string, size int64, write func(io.Writer) error) (FileInfo, error) {
	f, err := fsys.Create(path)
	if err != nil {
		return FileInfo{}, err
	}
	if sized, ok := f.(interface{ setSize(n int64) }); ok {
		sized.setSize(size)
	}
	p := newPipeline(f)
	err = write(p)
	sum, written, werr := p.close()
	if err == nil || errors.Is(err, errWriting) {
		err = werr
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return FileInfo{Name: filepath.Base(path), Size: written, SHA256: hex.EncodeToString(sum)}, err
}
