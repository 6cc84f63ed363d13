package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Request describes a build. Files and Runtime are required.
type Request struct {
	// Files are the generated Go files by slash-separated path in the module: "main.go", or "p001/train.go"
	// for a package that main imports as Module + "/p001".
	Files map[string][]byte
	// Runtime is the folder runtime of planc's module: runtime.Sources.
	Runtime fs.FS

	// CUDA are the packages cuda and cuda/kernels, for a binary that trains on GPUs: cuda.Sources. It is built with the
	// tag cuda, for linux, with the C compiler that the go command names; nil builds one for CPUs, which needs none.
	CUDA fs.FS

	Module  string // path of the private module; "" is planc.generated/train. Its last element names the binary
	Out     string // where the binary goes, relative to Dir; "" leaves it in the cache
	Dir     string // where planc was called; "" is the working directory
	Version string // planc's, shown by `go version -m BINARY`
	Cache   string // folder of builds; "" is planc/build in the user's cache folder
	Host    bool   // for this machine, whatever GOOS and GOARCH say

	// Watch, if not nil, is called with how many packages the go command has begun to compile, of how many; all is 0
	// until that is known. Calls do not overlap. It is not called for a build that is found in the cache.
	Watch func(done, all int)

	// Plain leaves out inlining and optimization in the generated packages, which computes the same and compiles in
	// half the time: for tests that build hundreds of them.
	Plain bool
}

// Result is a successful build.
type Result struct {
	Binary  string  // absolute path: Out, or the one in the cache
	Cached  bool    // nothing had to be compiled
	Seconds float64 // it took
}

// CompileError reports that the go command refused generated code, which is a bug of planc.
type CompileError struct {
	Dir    string // where the generated files are kept
	Output string // the go command's
}

func (e *CompileError) Error() string {
	return fmt.Sprintf("the Go that planc generated does not compile. This is a fault in planc; please "+
		"report it with\n"+
		"the job file and the generated files, which are kept in\n%s\n\n%s", e.Dir, e.Output)
}

// Build compiles the package main at the root of r.Files, or finds it in the cache. Concurrent calls are safe, also
// from several processes.
func Build(ctx context.Context, r Request) (Result, error) {
	start := time.Now()
	if r.Module == "" {
		r.Module = "planc.generated/train"
	}
	e, err := open(ctx, r)
	if err != nil {
		return Result{}, err
	}
	cached, err := e.ensure(ctx)
	if err != nil {
		return Result{}, err
	}
	if !cached {
		trim(e.root, keep)
	}
	binary := e.binary()
	if r.Out != "" {
		binary, err = install(binary, r)
		if err != nil {
			return Result{}, err
		}
	}
	return Result{Binary: binary, Cached: cached, Seconds: time.Since(start).Seconds()}, nil
}

// entry is one build in the cache: a folder named by the hash of everything that goes into it.
type entry struct {
	root string // of the cache
	key  string
	mod  module
	tool toolchain

	watch func(done, all int)
}

// open finds the toolchain and the request's cache entry.
func open(ctx context.Context, r Request) (entry, error) {
	root, err := cacheRoot(r.Cache, "build")
	if err != nil {
		return entry{}, err
	}
	tool, err := findGo(ctx, root, r.Host)
	if err != nil {
		return entry{}, err
	}
	if r.CUDA != nil {
		if err := tool.forGPUs(ctx); err != nil {
			return entry{}, err
		}
	}
	mod, err := newModule(r)
	if err != nil {
		return entry{}, err
	}
	return entry{root: root, key: mod.hash(tool), mod: mod, tool: tool, watch: r.Watch}, nil
}

func (e entry) dir() string { return filepath.Join(e.root, e.key) }

func (e entry) binary() string { return filepath.Join(e.dir(), e.mod.name+e.tool.exe()) }

// ensure builds the entry's binary unless it exists, and reports whether it existed.
func (e entry) ensure(ctx context.Context) (cached bool, err error) {
	unlock, err := lock(e.root, e.key)
	if err != nil {
		return false, fmt.Errorf("lock the build cache: %w%s", err, elsewhere)
	}
	defer unlock()
	if matchesDigest(e.binary()) {
		touch(e.dir())
		return true, nil
	}
	return false, e.compile(ctx)
}

// compile writes the module, runs the go command, and seals the binary.
func (e entry) compile(ctx context.Context) error {
	if err := e.mod.write(e.dir()); err != nil {
		return machineError(fmt.Errorf("write the generated module: %w", err))
	}
	src, partial := filepath.Join(e.dir(), "src"), e.binary()+".partial"
	settings := slices.Concat(e.mod.flags(), e.tool.tags())
	out, err := e.tool.build(ctx, src, slices.Concat(settings, []string{"-o", partial, "."}),
		e.packages(ctx, src, settings))
	if err != nil {
		return e.tool.blame(ctx, err, src, out)
	}
	if err := saveWithDigest(partial, e.binary(), 0o700); err != nil {
		return machineError(fmt.Errorf("keep the binary in the build cache: %w", err))
	}
	return nil
}

// position matches a line in which the go command reports an error in one of planc's source files. Go's own files have
// absolute paths.
var position = regexp.MustCompile(`(?m)^[^/\s]\S*\.go:\d+(:\d+)?: `)

// blame returns the cause of a failure of the go command. The machine is checked first: a package that could not be
// written to a full disk is later missing, which looks like an error in the source.
func (t toolchain) blame(ctx context.Context, err error, src, output string) error {
	var exit *exec.ExitError
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if lacks := cmp.Or(firstMatch(fromMachine, output), t.noSpace(ctx, src)); lacks != "" {
		return &MachineError{Line: lacks}
	}
	if errors.As(err, &exit) && position.MatchString(output) {
		return &CompileError{Dir: src, Output: strings.TrimSpace(output)}
	}
	return fmt.Errorf("go build in %s: %w\n%s", src, err, strings.TrimSpace(output))
}
