package ckpt

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ExportLimit is how large a file of an exported model is at most, in bytes, if the user says nothing else.
const ExportLimit = 5_000_000_000

// Export writes tensors to the new folder dir in the layout of Hugging Face's tools: model.safetensors, or several
// files of at most limit bytes with an index, and the other files by name. c.Name is ignored. The folder appears only
// when it is complete and durable. Leftovers of an Export to the same folder that was killed are removed.
func Export(dir string, c Content, limit int64, others map[string][]byte) error {
	if err := Vacant(dir); err != nil {
		return err
	}
	dir = filepath.Clean(dir)
	fsys := osFS{}
	begin := filepath.Join(filepath.Dir(dir), tmpPrefix+filepath.Base(dir)+"-")
	removeLeftovers(begin)
	tmp := begin + rand.Text()[:randomLen]
	err := makeDir(fsys, filepath.Dir(dir))
	if err == nil {
		err = exportAll(fsys, tmp, c, limit, others)
	}
	if err == nil {
		os.Remove(dir) // it is empty if it exists
		err = fsys.Rename(tmp, dir)
	}
	if err != nil {
		fsys.RemoveAll(tmp)
		return fmt.Errorf("checkpoint: cannot write %s: %w", dir, err)
	}
	return fsys.SyncDir(filepath.Dir(dir))
}

// randomLen is the number of characters of rand.Text at the end of the name of a temporary folder.
const randomLen = 8

// removeLeftovers removes temporary folders of exports that have ended. A running export holds a lock on its folder.
func removeLeftovers(begin string) {
	names, _ := filepath.Glob(escapeGlob(begin) + strings.Repeat("[A-Z2-7]", randomLen))
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if held, err := tryLock(f); held && err == nil {
			os.RemoveAll(name)
		}
		f.Close()
	}
}

// escapeGlob escapes a path so that the pattern matches only the path itself.
func escapeGlob(path string) string {
	if filepath.Separator == '\\' { // has no escapes there
		return path
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Vacant returns an error if Export to a folder would have to overwrite something.
func Vacant(dir string) error {
	list, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return inputf("%s is not a folder, or lies below a file; nothing is overwritten: name another folder", dir)
	case err != nil:
		return fmt.Errorf("checkpoint: %w", err)
	case len(list) > 0:
		return inputf("%s is not empty (it has %s); nothing is overwritten: name another folder", dir, list[0].Name())
	}
	return nil
}

func exportAll(fsys fileSystem, tmp string, c Content, limit int64, others map[string][]byte) error {
	if err := fsys.Mkdir(tmp); err != nil {
		return err
	}
	if f, err := os.Open(tmp); err == nil {
		defer f.Close()
		LockFile(f) // keeps removeLeftovers of other exports away
	}
	parts := split(c.Tensors, limit)
	names := map[string]string{}
	total, first := int64(0), 0
	for i, n := range parts {
		part := c.part(first, n)
		part.Name = partName(i, len(parts))
		if _, err := writeContent(fsys, filepath.Join(tmp, part.Name), part); err != nil {
			return fmt.Errorf("%s: %w", part.Name, err)
		}
		for _, t := range part.Tensors {
			names[t.Name] = part.Name
			total += t.Bytes()
		}
		first += n
	}
	others = maps.Clone(others)
	if len(parts) > 1 {
		others[indexName] = indexFile(total, names)
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		_, err := writeFile(fsys, filepath.Join(tmp, name), func(w io.Writer) error {
			_, err := w.Write(others[name])
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return fsys.SyncDir(tmp)
}

// split returns how many tensors each file holds: as many as fit into limit bytes, but at least one.
func split(tensors []Tensor, limit int64) (parts []int) {
	size := int64(0)
	for _, t := range tensors {
		if len(parts) == 0 || size+t.Bytes() > limit {
			parts, size = append(parts, 0), 0
		}
		parts[len(parts)-1]++
		size += t.Bytes()
	}
	return parts
}

// part returns n tensors of the content, starting at first.
func (c *Content) part(first, n int) Content {
	return Content{Tensors: c.Tensors[first : first+n], Metadata: c.Metadata, Fill: func(i int, w io.Writer) error {
		return c.Fill(first+i, w)
	}}
}

func partName(i, n int) string {
	if n == 1 {
		return "model.safetensors"
	}
	return fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n)
}

// indexFile returns the index that maps tensors to files.
func indexFile(total int64, files map[string]string) []byte {
	index := map[string]any{"metadata": map[string]int64{"total_size": total}, "weight_map": files}
	b, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("ckpt: an index that is no JSON: %v", err))
	}
	return append(b, '\n')
}
