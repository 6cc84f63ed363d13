package ckpt

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// File is an open safetensors file. Any number of goroutines may read it.
type File struct {
	path     string
	f        ObjectReader
	data     int64 // offset of the first tensor
	entries  []entry
	index    map[string]int
	metadata map[string]string
}

// OpenFile opens a safetensors file and checks its header against the format and the file's length. A file that
// violates the format is an InputError.
func OpenFile(path string) (*File, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, reading(err)
	}
	file := &File{path: path, f: f, index: map[string]int{}}
	if err := file.readHeader(size); err != nil {
		f.Close()
		return nil, err
	}
	for i, e := range file.entries {
		file.index[e.Name] = i
	}
	return file, nil
}

func (f *File) readHeader(size int64) error {
	entries, metadata, data, err := scan(f.f, size)
	if err != nil {
		return fmt.Errorf("checkpoint: %s: %w", f.path, err)
	}
	f.entries, f.metadata, f.data = entries, metadata, data
	return nil
}

// scan reads the header of a file of a given size. data is the offset of the first tensor.
func scan(r io.ReaderAt, size int64) (entries []entry, metadata map[string]string, data int64, err error) {
	bad := func(format string, args ...any) error {
		return &InputError{"not a valid safetensors file: " + fmt.Sprintf(format, args...)}
	}
	var length [8]byte
	if size < 8 {
		return nil, nil, 0, bad("it has only %d bytes", size)
	}
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return nil, nil, 0, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n > maxHeader:
		return nil, nil, 0, bad("its header would be %d bytes long, and at most %d are allowed", n, maxHeader)
	case int64(n) > size-8:
		return nil, nil, 0, bad("it is truncated: its header takes %d bytes, and it has %d", n, size-8)
	}
	h := make([]byte, n)
	if _, err := r.ReadAt(h, 8); err != nil && err != io.EOF {
		return nil, nil, 0, err
	}
	data = 8 + int64(n)
	entries, metadata, err = parseHeader(h, size-data)
	if err != nil {
		return nil, nil, 0, bad("%v", err)
	}
	return entries, metadata, data, nil
}

// Tensors returns the file's tensors in order.
func (f *File) Tensors() []Tensor {
	tensors := make([]Tensor, len(f.entries))
	for i, e := range f.entries {
		tensors[i] = e.Tensor
	}
	return tensors
}

// Metadata returns the file's metadata; nil if it has none.
func (f *File) Metadata() map[string]string { return f.metadata }

// Tensor returns a tensor by name and a reader of its bytes. A missing tensor is an InputError.
func (f *File) Tensor(name string) (Tensor, *io.SectionReader, error) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, nil, inputf("%s has no tensor %s (it has %s)", f.path, name, f.some())
	}
	e := f.entries[i]
	return e.Tensor, io.NewSectionReader(f.f, f.data+e.begin, e.end-e.begin), nil
}

// some lists the first tensors' names.
func (f *File) some() string {
	const few = 3
	var names []string
	for _, e := range f.entries[:min(few, len(f.entries))] {
		names = append(names, e.Name)
	}
	s := strings.Join(names, ", ")
	if n := len(f.entries) - few; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	if s == "" {
		return "none"
	}
	return s
}

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }
