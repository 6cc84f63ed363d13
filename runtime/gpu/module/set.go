//go:build cuda && linux

package module

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
)

// Set is the CUDA modules of a program on one device. They come from a NAME.fatbin for each source NAME.cu or, if the
// program was built without nvcc, from the sources.
type Set struct {
	images fs.FS
	arch   string            // architecture of the device, such as 90
	files  map[string]string // path of the fatbin or source, by name of the source; "" for a source of cuda/kernels
	loaded map[string]*cuda.Module
}

// New returns the modules of a program for an architecture, such as 90. They must be loaded.
func New(images fs.FS, arch string) (*Set, error) {
	m := newSet(images, arch)
	sources := map[string]string{}
	err := fs.WalkDir(images, ".", func(name string, d fs.DirEntry, err error) error {
		switch path.Ext(name) {
		case ".fatbin":
			m.files[strings.TrimSuffix(path.Base(name), ".fatbin")+".cu"] = name
		case ".cu":
			sources[path.Base(name)] = name
		}
		return err
	})
	if err != nil || len(m.files) > 0 {
		return m, err
	}
	if len(sources) == 0 {
		return m, errors.New("gpu: the program has no kernels")
	}
	m.files = sources
	for _, k := range kernels.Table {
		m.files[k.File] = ""
	}
	return m, nil
}

// NewForSources returns the modules of sources of cuda/kernels. Those without an image kernels/NAME.fatbin are
// compiled on this machine.
func NewForSources(images fs.FS, arch string, sources []string) *Set {
	m := newSet(images, arch)
	for _, source := range sources {
		image := "kernels/" + strings.TrimSuffix(source, ".cu") + ".fatbin"
		if _, err := fs.Stat(images, image); err != nil {
			image = ""
		}
		m.files[source] = image
	}
	return m
}

func newSet(images fs.FS, arch string) *Set {
	return &Set{images: images, arch: arch, files: map[string]string{}, loaded: map[string]*cuda.Module{}}
}

// Load loads all kernels at once, because later, loading may wait for kernels that wait for work that this
// rank has not launched yet. Sources are compiled concurrently.
func (m *Set) Load() error {
	names := slices.Sorted(maps.Keys(m.files))
	images, errs := make([][]byte, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { images[i], errs[i] = m.image(name) })
	}
	all.Wait()
	for i, name := range names {
		err := errs[i]
		if err == nil {
			m.loaded[name], err = cuda.Load(images[i])
		}
		if err != nil {
			delete(m.loaded, name)
			return fmt.Errorf("gpu: kernels from %s: %w", name, err)
		}
	}
	return nil
}

// Find returns the kernel of a name, from its family's source or from those that were printed for the
// program.
func (m *Set) Find(name string) (*cuda.Kernel, error) {
	for i := range kernels.Table {
		if k := &kernels.Table[i]; name == k.Name || strings.HasPrefix(name, k.Name+"_") && slices.Contains(k.Types,
			name[len(k.Name)+1:]) {
			return m.kernel(k.File, name)
		}
	}
	for _, source := range m.printed() {
		if k, err := m.kernel(source, name); err == nil || !missing(err) {
			return k, err
		}
	}
	return nil, fmt.Errorf("gpu: the program has no kernel %s", name)
}

// printed returns the sources that are not in the table.
func (m *Set) printed() (names []string) {
	for source := range m.files {
		if !slices.ContainsFunc(kernels.Table, func(k kernels.Kernel) bool { return k.File == source }) {
			names = append(names, source)
		}
	}
	slices.Sort(names)
	return names
}

// kernel returns a kernel of a source's module.
func (m *Set) kernel(source, name string) (*cuda.Kernel, error) {
	x := m.loaded[source]
	if x == nil {
		return nil, fmt.Errorf("gpu: the program has no kernels from %s", source)
	}
	return x.Kernel(name)
}

// image returns what the driver loads for a source.
func (m *Set) image(source string) ([]byte, error) {
	file := m.files[source]
	switch {
	case file == "":
		text, err := fs.ReadFile(kernels.Sources, source)
		return compiledHere(source, text, m.arch, err)
	case path.Ext(file) == ".cu":
		text, err := fs.ReadFile(m.images, file)
		return compiledHere(source, text, m.arch, err)
	}
	return fs.ReadFile(m.images, file)
}

// notFound is the driver's error code for a function that a module does not have.
const notFound = 500

func missing(err error) bool {
	e := (*cuda.Error)(nil)
	return errors.As(err, &e) && e.Code == notFound
}

// Close unloads the modules.
func (m *Set) Close() (err error) {
	for _, x := range m.loaded {
		err = errors.Join(err, x.Unload())
	}
	return err
}
