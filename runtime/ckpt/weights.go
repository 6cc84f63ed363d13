package ckpt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// indexName is the index of a model that is split over several files, as on the Hugging Face Hub.
const indexName = "model.safetensors.index.json"

// Weights is the tensors of a folder of safetensors files, from which training starts. Any number of goroutines may
// read them.
type Weights struct {
	path  string
	files []*File
	index map[string]*File
}

// OpenWeights opens the weights in a folder: the files that model.safetensors.index.json lists, else model.safetensors,
// else every *.safetensors. If path is a file, it opens only that. A folder with a manifest is first verified as a
// checkpoint. Damaged, missing or ambiguous files are an InputError.
func OpenWeights(path string) (*Weights, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, inputf("there is no %s", path)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	paths := []string{path}
	if info.IsDir() {
		paths, err = weightFiles(path)
		if err != nil {
			return nil, err
		}
	}
	w := &Weights{path: path, index: map[string]*File{}}
	for _, p := range paths {
		if err := w.add(p); err != nil {
			w.Close()
			return nil, err
		}
	}
	return w, nil
}

// weightFiles returns the files of a folder to open.
func weightFiles(dir string) ([]string, error) {
	if found, err := isThere(filepath.Join(dir, manifestName)); err != nil {
		return nil, err
	} else if found {
		if _, err := Open(dir); err != nil {
			return nil, err
		}
	}
	b, err := readSmall(filepath.Join(dir, indexName), maxHeader)
	if err == nil {
		return indexed(dir, b)
	}
	if !absent(err) {
		return nil, reading(err)
	}
	whole := filepath.Join(dir, "model.safetensors")
	if found, err := isThere(whole); err != nil {
		return nil, err
	} else if found {
		return []string{whole}, nil
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var paths []string
	for _, e := range list {
		if filepath.Ext(e.Name()) == ".safetensors" {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, inputf("%s holds no .safetensors files", dir)
	}
	return paths, nil
}

// isThere reports whether a file exists. It returns an error if the folder cannot be read.
func isThere(path string) (bool, error) {
	_, err := os.Stat(path)
	switch {
	case err == nil:
		return true, nil
	case absent(err):
		return false, nil
	}
	return false, reading(err)
}

// indexed returns the files that an index lists.
func indexed(dir string, b []byte) ([]string, error) {
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, inputf("%s: %v", filepath.Join(dir, indexName), err)
	}
	names := slices.Compact(slices.Sorted(maps.Values(index.WeightMap)))
	if len(names) == 0 {
		return nil, inputf("%s lists no files", filepath.Join(dir, indexName))
	}
	for i, name := range names {
		if !filepath.IsLocal(name) {
			return nil, inputf("%s names the file %q, which is not in its folder", filepath.Join(dir, indexName), name)
		}
		names[i] = filepath.Join(dir, name)
	}
	return names, nil
}

func (w *Weights) add(path string) error {
	f, err := OpenFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return inputf("%s is missing", path)
	}
	if err != nil {
		return err
	}
	w.files = append(w.files, f)
	for _, t := range f.Tensors() {
		if other := w.index[t.Name]; other != nil {
			return inputf("tensor %s is both in %s and in %s", t.Name, other.path, path)
		}
		w.index[t.Name] = f
	}
	return nil
}

// Tensors returns all tensors, file by file.
func (w *Weights) Tensors() []Tensor {
	var all []Tensor
	for _, f := range w.files {
		all = append(all, f.Tensors()...)
	}
	return all
}

// Tensor returns a tensor by name, as File.Tensor does.
func (w *Weights) Tensor(name string) (Tensor, *io.SectionReader, error) {
	f := w.index[name]
	switch {
	case f != nil:
		return f.Tensor(name)
	case len(w.files) == 1:
		return w.files[0].Tensor(name) // its message lists what it has
	}
	return Tensor{}, nil, inputf("none of the %d files in %s has a tensor %s", len(w.files), w.path, name)
}

// Path returns the file that holds a tensor, or the path of the weights if no file does.
func (w *Weights) Path(name string) string {
	if f := w.index[name]; f != nil {
		return f.path
	}
	return w.path
}

// Close closes the files.
func (w *Weights) Close() error {
	var errs []error
	for _, f := range w.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
