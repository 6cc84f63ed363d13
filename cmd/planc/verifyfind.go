package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/shell"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// lockedExtensions lists the extensions that the job of a lock can have.
var lockedExtensions = []string{".yaml", ".yml", ".json"}

// jobsArg completes any number of JOBs.
func jobsArg(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return jobExtensions, cobra.ShellCompDirectiveFilterFileExt
}

// candidate is a job to verify, or an error in place of one.
type candidate struct {
	path  string
	wrong error
}

// findJobs returns the jobs of verify's arguments: each is a JOB, a lock, or DIR/... for all locks below DIR.
func findJobs(args []string) (jobs []candidate, err error) {
	for _, arg := range args {
		root, all := strings.CutSuffix(filepath.ToSlash(arg), "/...")
		if arg == "..." {
			root, all = ".", true
		}
		switch {
		case all:
			found, err := locksBelow(filepath.FromSlash(root))
			if err != nil {
				return nil, err
			}
			jobs = append(jobs, found...)
		case filepath.Ext(arg) == ".lock":
			jobs = append(jobs, candidateOf(arg))
		default:
			jobs = append(jobs, candidate{path: arg})
		}
	}
	return jobs, nil
}

// candidateOf returns the job of a lock.
func candidateOf(path string) candidate {
	if job := jobOfLock(path); job != "" {
		return candidate{path: job}
	}
	return candidate{path, lock.Errorf(lock.Differs, "%s has no job file next to it; remove it, or restore %s",
		shell.Slashed(path),
		shell.Slashed(strings.TrimSuffix(path, ".lock")+lockedExtensions[0]))}
}

// jobOfLock returns the job file next to a lock; "" if there is none.
func jobOfLock(path string) string {
	for _, ext := range lockedExtensions {
		if job := strings.TrimSuffix(path, ".lock") + ext; !missing(job) {
			return job
		}
	}
	return ""
}

// lockScan collects the locks and the generated files in a folder and below.
type lockScan struct {
	jobs    []candidate     // jobs of locks
	orphans map[string]bool // generated files that no lock names
	damaged []string        // jobs whose locks cannot be read; it is unknown which files these name
}

// locksBelow returns the jobs of all locks in a folder and below, and errors for generated code without a lock. It
// skips the folders that the go command skips.
func locksBelow(root string) ([]candidate, error) {
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, inputErrorf(spec.NoFile, "", "%s/... means the locks below a folder, and %s is not a folder",
			shell.Slashed(root),
			shell.Slashed(root))
	}
	b := &lockScan{orphans: map[string]bool{}}
	var named []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		name := e.Name()
		switch {
		case err != nil:
			return fmt.Errorf("look for locks: %w", err)
		case e.IsDir() && path != root &&
			(strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "vendor" ||
				name == "node_modules"):
			return fs.SkipDir
		case filepath.Ext(name) == ".lock" && path != root:
			named = append(named, b.lock(path)...)
		case !e.IsDir() && strings.HasSuffix(name, generatedSuffix) && isGenerated(path):
			b.orphans[filepath.Clean(path)] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, path := range named {
		delete(b.orphans, path)
	}
	slices.SortFunc(b.jobs, func(x, y candidate) int { return strings.Compare(x.path, y.path) })
	for _, path := range slices.Sorted(maps.Keys(b.orphans)) {
		if !b.mayBeNamed(path) {
			b.jobs = append(b.jobs, candidate{path, lock.Errorf(lock.Absent, "no lock names the generated file %s; "+
				"run planc gen to write its lock, or remove the file",
				shell.Slashed(path))})
		}
	}
	if len(b.jobs) == 0 {
		return nil, lock.Errorf(lock.Absent, "there is no planc lock in %s or below; run planc plan --update to "+
			"write one", shell.Slashed(root))
	}
	return b.jobs, nil
}

// lock adds a lock, if it is planc's, and returns the files that it names. A file with the name of a job's lock always
// counts as planc's, so that a damaged lock is not mistaken for one of another tool.
func (b *lockScan) lock(path string) (named []string) {
	job := jobOfLock(path)
	data, err := os.ReadFile(path)
	switch {
	case err == nil && lock.IsOurs(data):
	case job == "" || filepath.Base(job) != jobFile && !looksLikeJob(job):
		return nil
	}
	b.jobs = append(b.jobs, candidateOf(path))
	f, err := lock.Parse(path, data, "")
	if err != nil {
		b.damaged = append(b.damaged, job)
		return nil
	}
	for file := range f.Files {
		named = append(named, filepath.Join(filepath.Dir(path), filepath.FromSlash(file)))
	}
	return named
}

// mayBeNamed reports whether a damaged lock may name a generated file, so that repairing the lock is enough.
func (b *lockScan) mayBeNamed(path string) bool {
	return slices.ContainsFunc(b.damaged, func(job string) bool {
		return job != "" && fileName(job) == filepath.Base(path) && isInside(filepath.Dir(job), path)
	})
}

func isInside(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// looksLikeJob reports whether a file has the keys of a job. Other tools also have locks next to YAML files:
// Chart.yaml, pubspec.yaml.
func looksLikeJob(path string) bool {
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	doc, diags := strict.Parse(path, data)
	if doc == nil || len(diags) > 0 {
		return strings.Contains(string(data), "cluster") && strings.Contains(string(data), "model")
	}
	return doc.Root.Get("cluster") != nil && doc.Root.Get("model") != nil
}
