package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/shell"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
)

func genCommand(a *app) *cobra.Command {
	var locks lockFlags
	var out string
	var withMain bool
	flags := jobFlags{}
	c := &cobra.Command{
		Use:   "gen [JOB]",
		Short: "generate training code for your own Go package (go generate)",
		Long: `gen writes JOB_planc.go next to the job: a file of the package in that folder, with Run, Main and Plan. It
imports only github.com/planc-dev/planc/runtime and the standard library. The plan comes from the lock next to the
job; without a lock, gen searches and writes one. A second run writes nothing. Files that planc did not generate are
never overwritten. The code depends only on the job file and its data.tokenizer, which the code contains, so that planc
verify can check it; there is no --set.`,
		Example: "planc gen planc.yaml -o train\n//go:generate go tool planc gen -o train",
		Args:    oneJob,
		RunE: func(_ *cobra.Command, args []string) error {
			return genJob(a, args, flags, genRequest{out: out, main: withMain, locks: locks})
		},
	}
	flags.cmd = c
	c.Flags().SortFlags = false
	c.Flags().StringVarP(&out, "output", "o", "", "write to the folder `DIR`, which is created if needed")
	c.Flags().BoolVar(&withMain, "main", false, "also generate func main, for a package main")
	locks.register(c)
	return c
}

// genRequest holds the flags of planc gen.
type genRequest struct {
	out   string // -o
	main  bool
	locks lockFlags
}

// genJob runs planc gen.
func genJob(a *app, args []string, flags jobFlags, r genRequest) error {
	j, err := loadJob(a.Console, args, flags)
	if err != nil {
		return err
	}
	if lock.PathOf(j.path) == "" {
		return inputErrorf(BadFlag, "",
			"planc gen needs a job file: the lock and the generated code are written next to it")
	}
	if err := spec.CheckGenerate(j.Job); err != nil {
		return err
	}
	d, err := decidePlan(a, j, r.locks)
	if err != nil {
		return err
	}
	t, err := findTarget(j, d.lock, r)
	if err != nil {
		return err
	}
	g, err := regenerate(a.Console, d, t)
	if err != nil {
		return err
	}
	if err := t.check(g.files[t.key]); err != nil {
		return err
	}
	if r.locks.locked {
		if err := checkFrozen(a, g, t); err != nil {
			return err
		}
	} else if err := checkProgram(a, d.lock, g.program, r.locks); err != nil {
		return err
	}
	return writeGenerated(a.Console, g, t)
}

// regenerate generates the files of gen in memory, by their paths relative to the lock's folder.
func regenerate(ui *console.Console, d *decision, t *target) (*generated, error) {
	p, err := compileProgram(ui, d.job, d.Best.Plan, nil)
	if err != nil {
		return nil, err
	}
	src, err := generateSource(ui, d, p, form{pkg: t.pkg, main: t.main, from: t.job})
	if err != nil {
		return nil, err
	}
	embedded, err := tokenizerSource(ui, d.job)
	src = append(src, embedded...)
	return &generated{decision: d, program: programHash(p), files: map[string][]byte{t.key: src}}, err
}

// lockOfGen returns the lock that gen writes.
func lockOfGen(g *generated, t *target) *lock.File {
	f := g.lock.Updated(g.forLock(g.program))
	f.Gen = lock.Gen{Main: t.main, Package: t.pkg}
	f.Files = map[string]string{}
	for path, src := range g.files {
		f.Files[path] = lock.Hash(src)
	}
	return f
}

// checkFrozen checks, for gen --locked, that neither the lock nor the generated code would change.
func checkFrozen(a *app, g *generated, t *target) error {
	old, now := g.lock.File, lockOfGen(g, t)
	if old.Program == now.Program && !old.Edited() && maps.Equal(old.Files, now.Files) && old.Gen == now.Gen {
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(g.files)) {
		if err := a.Print(truncateDiff(a.Verbose, fileDiff(t.folder, path, g.files[path]))); err != nil {
			return err
		}
	}
	if err := checkProgram(a, g.lock, g.program, lockFlags{locked: true}); err != nil {
		return err
	}
	return lock.Errorf(lock.Differs, "%s holds, but the generated code is out of date; run planc gen "+
		"without --locked to update it", g.lock.Name())
}

// fileDiff returns a unified diff of a file and its newly generated content.
func fileDiff(folder, path string, generated []byte) string {
	name := shell.Slashed(filepath.Join(folder, filepath.FromSlash(path)))
	old, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		return unified("/dev/null", nil, name, generated)
	}
	return unified(name, old, name+" (generated now)", generated)
}

// writeGenerated writes the files, removes obsolete files of an earlier run, and writes the lock.
func writeGenerated(ui *console.Console, g *generated, t *target) error {
	if err := os.MkdirAll(t.dir, 0o777); err != nil {
		return fmt.Errorf("-o %s: the folder cannot be created: %w", t.dir, err)
	}
	for _, path := range slices.Sorted(maps.Keys(g.files)) {
		name := filepath.Join(t.folder, filepath.FromSlash(path))
		wrote, err := writeWhole(name, g.files[path])
		if err != nil {
			return err
		}
		if wrote {
			ui.Notef("wrote    %s", shell.Slashed(name))
		}
	}
	if err := removeOld(ui, g, t); err != nil {
		return err
	}
	reportStaleLock(ui, g.decision, "")
	j := g.job
	if !j.Hardware.IsCPU() {
		ui.Note("target", fmt.Sprintf("cpu: this code runs all %d ranks on one CPU instead of %s. Not supported "+
			"yet: generated code for GPUs; planc compile --target cuda builds a binary for them", j.Hardware.Devices(),
			planner.ClusterText(j.Hardware)))
	}
	if note := missingRequirement(t.dir); note != "" {
		ui.Notef("note: %s", note)
	}
	return writeLock(ui, g.lock, lockOfGen(g, t))
}

// removeOld removes files that the lock names but that are no longer generated. It never removes files without planc's
// header.
func removeOld(ui *console.Console, g *generated, t *target) error {
	if g.lock.File == nil {
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(g.lock.File.Files)) {
		name := filepath.Join(t.folder, filepath.FromSlash(path))
		if _, current := g.files[path]; current || !strings.HasSuffix(path, generatedSuffix) || missing(name) ||
			!isGenerated(name) || g.containsFile(t, name) {
			continue
		}
		if err := os.Remove(name); err != nil {
			return fmt.Errorf("cannot remove %s, which an earlier planc gen wrote: %w", shell.Slashed(name), err)
		}
		ui.Notef("removed  %s", shell.Slashed(name))
	}
	return nil
}

// containsFile reports whether a file is one of the generated files under another name: through a link, or on a file
// system that ignores case.
func (g *generated) containsFile(t *target, name string) bool {
	old, err := os.Stat(name)
	for path := range g.files {
		if now, nowErr := os.Stat(filepath.Join(t.folder, filepath.FromSlash(path))); err == nil && nowErr == nil &&
			os.SameFile(old, now) {
			return true
		}
	}
	return false
}

// isGenerated reports whether a file has planc's header.
func isGenerated(path string) bool {
	head, err := os.ReadFile(path)
	return err == nil && strings.HasPrefix(string(head), generatedHeader)
}

// modulePath is the path of planc's own module.
const modulePath = "github.com/planc-dev/planc"

// missingRequirement says what the module of a folder lacks to compile generated code; "" if nothing.
func missingRequirement(dir string) string {
	dir, err := filepath.Abs(dir)
	for err == nil {
		data, readErr := os.ReadFile(filepath.Join(dir, "go.mod"))
		if readErr == nil {
			if strings.Contains(string(data), modulePath) {
				return ""
			}
			return fmt.Sprintf("%s does not require %s, which the generated code imports: run go get -tool "+
				"%s/cmd/planc",
				shell.Slashed(filepath.Join(filepath.Base(dir), "go.mod")), modulePath, modulePath)
		}
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	return "the generated code is not in a Go module: run go mod init and go get -tool " + modulePath + "/cmd/planc"
}
