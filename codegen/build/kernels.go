package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// KernelRequest is CUDA C++ source to compile.
type KernelRequest struct {
	// Files are the sources by slash-separated path. Each that ends in .cu becomes a fatbin; the others, .cuh and .h,
	// are what those include.
	Files map[string][]byte
	Archs []string // as in [Architectures]; none is those
	Cache string   // folder of fatbins; "" is planc/kernels in the user's cache folder

	// Watch, if not nil, is called with how many of the sources have a fatbin, each time that one more has: calls do
	// not overlap, and all are over when CompileKernels returns.
	Watch func(done, all int)
}

// Kernels are compiled kernels.
type Kernels struct {
	Fatbins map[string][]byte // by the path of the source
	Cached  int               // how many of them nothing had to be compiled for
}

// KernelError reports that nvcc refused generated code, which is a bug of planc.
type KernelError struct {
	Dir    string // where the generated files are kept
	Output string // nvcc's
}

func (e *KernelError) Error() string {
	return fmt.Sprintf("the CUDA C++ that planc generated does not compile. This is a fault in planc; please "+
		"report it with\n"+
		"the job file and the generated files, which are kept in\n%s\n\n%s", e.Dir, e.Output)
}

// nvccFlags are the flags with which every kernel is compiled.
var nvccFlags = []string{"-std=c++17", "-O3", "-fatbin"}

// CompileKernels compiles each .cu file of the request for all its architectures, in parallel, or finds the results in
// the cache. Concurrent calls are safe, also from several processes.
func (n NVCC) CompileKernels(ctx context.Context, r KernelRequest) (Kernels, error) {
	if len(r.Archs) == 0 {
		r.Archs = Architectures
	}
	gencode, err := n.gencode(r.Archs)
	if err != nil {
		return Kernels{}, err
	}
	root, err := cacheRoot(r.Cache, "kernels")
	if err != nil {
		return Kernels{}, err
	}
	var units []unit
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			panic(fmt.Sprintf("build: generated file %q lies outside its folder", name))
		}
		if path.Ext(name) == ".cu" {
			units = append(units, newUnit(n, root, name, r.Files, slices.Concat(nvccFlags, gencode)))
		}
	}
	k := Kernels{Fatbins: map[string][]byte{}}
	if err := compileAll(ctx, n, units, r.Watch); err != nil {
		return k, err
	}
	for _, u := range units {
		k.Fatbins[u.name] = u.fatbin
		if u.cached {
			k.Cached++
		}
	}
	trim(root, keepKernels)
	return k, nil
}

// keepKernels is how many fatbins stay in the cache, the most recently used first.
const keepKernels = 200

// unit is a source file in the cache: a folder named by the hash of everything that goes into its fatbin.
type unit struct {
	root, key, name string
	files           map[string][]byte // the source and what it may include
	flags           []string

	fatbin []byte
	cached bool
}

// newUnit computes the hash of everything that a fatbin is made from, including the files that are not compiled
// themselves.
func newUnit(n NVCC, root, name string, files map[string][]byte, flags []string) unit {
	u := unit{root: root, name: name, files: map[string][]byte{}, flags: flags}
	h := sha256.New()
	fmt.Fprintf(h, "1 %q %q %q\n", n.Version, name, flags)
	for _, f := range slices.Sorted(maps.Keys(files)) {
		if f == name || path.Ext(f) != ".cu" {
			u.files[f] = files[f]
			fmt.Fprintf(h, "%q %x\n", f, sha256.Sum256(files[f]))
		}
	}
	u.key = hex.EncodeToString(h.Sum(nil))[:32]
	return u
}

// compileAll compiles all units, as many in parallel as there are processors, and returns the first error.
func compileAll(ctx context.Context, n NVCC, units []unit, watch func(done, all int)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	made := counter{all: len(units), watch: watch}
	for i := range units {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := units[i].ensure(ctx, n); err != nil {
				stop(err)
				return
			}
			made.one()
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// counter counts the finished units of several goroutines and reports the count.
type counter struct {
	mu        sync.Mutex
	done, all int
	watch     func(done, all int)
}

func (c *counter) one() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	if c.watch != nil {
		c.watch(c.done, c.all)
	}
}

func (u *unit) dir() string { return filepath.Join(u.root, u.key) }

// ensure compiles the unit's fatbin unless it exists, and reads it.
func (u *unit) ensure(ctx context.Context, n NVCC) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	unlock, err := lock(u.root, u.key)
	if err != nil {
		return fmt.Errorf("lock the cache of kernels: %w", err)
	}
	defer unlock()
	file := filepath.Join(u.dir(), "out.fatbin")
	if matchesDigest(file) {
		u.cached = true
		touch(u.dir())
		u.fatbin, err = os.ReadFile(file)
		return err
	}
	if err := (module{files: u.files}).write(u.dir()); err != nil {
		return machineError(fmt.Errorf("write the generated kernels: %w", err))
	}
	if err := u.compile(ctx, n, file); err != nil {
		return err
	}
	u.fatbin, err = os.ReadFile(file)
	return err
}

// compile runs nvcc in the unit's folder, so that the result contains no path of this machine, and seals the fatbin.
func (u *unit) compile(ctx context.Context, n NVCC, file string) error {
	cmd := exec.CommandContext(ctx, n.Path, slices.Concat(u.flags, []string{"-o", "out.partial",
		filepath.FromSlash(u.name)})...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { // no part of what the cache goes by
		return strings.HasPrefix(v, "NVCC_PREPEND_FLAGS=") || strings.HasPrefix(v, "NVCC_APPEND_FLAGS=")
	})
	cmd.Dir, cmd.WaitDelay = u.dir(), 2*time.Second // its children may outlive it
	if out, err := cmd.CombinedOutput(); err != nil {
		return blameNVCC(ctx, err, n, u.dir(), string(out))
	}
	return saveWithDigest(filepath.Join(u.dir(), "out.partial"), file, 0o600)
}

// Lines of nvcc that say what is wrong: with the source, whose files it names as it was given them, not by a path from
// the root as those of the system; or with the machine's compiler of C++.
var (
	kernelPosition = regexp.MustCompile(`(?m)^[^/\s]\S*\.(cu|cuh|h)\(\d+\): (catastrophic )?error`)
	noHost         = regexp.MustCompile(`(?m)^(sh: .*)?(gcc|g\+\+): .*(not found|No such file)|cc1plus|Failed to ` +
		`preprocess host compiler`)
	wrongHost = regexp.MustCompile(`unsupported GNU version|unsupported Clang version|unsupported clang version`)
)

// blameNVCC returns the cause of a failure of nvcc.
func blameNVCC(ctx context.Context, err error, n NVCC, dir, output string) error {
	var exit *exec.ExitError
	output = strings.TrimSpace(output)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case fromMachine.MatchString(output):
		return &MachineError{Line: firstMatch(fromMachine, output)}
	case errors.As(err, &exit) && kernelPosition.MatchString(output):
		return &KernelError{Dir: dir, Output: output}
	case wrongHost.MatchString(output):
		return fmt.Errorf("nvcc %s does not support this machine's C++ compiler: install a supported one, and set "+
			"NVCC_CCBIN to it: %w\n%s", n.Version, err, output)
	case noHost.MatchString(output):
		return fmt.Errorf("nvcc %s needs a C++ compiler: install g++: %w\n%s", n.Version, err, output)
	}
	return fmt.Errorf("%s in %s: %w\n%s", n.Path, dir, err, output)
}
