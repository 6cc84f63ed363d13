package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/cmd/planc/internal/screen"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

func verifyCommand(a *app) *cobra.Command {
	flags := jobFlags{}
	c := &cobra.Command{
		Use:   "verify [JOB...|./...]",
		Short: "check that locks and generated code are up to date",
		Long: `verify compares each job with its lock, recompiles the program and the generated code in memory, and compares
them with the lock and the files. It writes nothing, searches only if the job has changed, and needs neither Go nor a
network. ./... means all locks in this folder and below. Differences are printed as unified diffs, the plan first, and
the exit status is 4. A newer cost model or another version of planc is not a difference if the program stays the
same.`,
		Example: "planc verify ./...",
		RunE: func(c *cobra.Command, args []string) error {
			flags.cmd = c
			return verifyJobs(a, args, flags)
		},
		ValidArgsFunction: jobsArg,
	}
	return c
}

// verifyJobs runs planc verify.
func verifyJobs(a *app, args []string, flags jobFlags) error {
	jobs, err := findJobs(args)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		jobs = []candidate{{}}
	}
	bad := 0
	var first error
	for i, job := range jobs {
		v, err := &verification{app: a}, job.wrong
		if err == nil {
			err = v.run(job.path, flags)
		}
		if err == nil && len(v.reasons) == 0 {
			a.Notef("verified %s", v.summary())
			continue
		}
		isLater := first != nil // the first error is returned, later ones are printed here
		bad++
		if !isLater {
			first = err
		}
		if i > 0 && err == nil {
			err = a.Print("\n")
		}
		if err == nil {
			if err := a.Print(v.report()); err != nil {
				return err
			}
		} else if isLater {
			_, text, _ := classify(err)
			fmt.Fprintln(a.Stderr, text)
		}
	}
	return verdict(bad, len(jobs), first)
}

// verdict returns the error of verify: that of the only job, or the number of locks that are out of date.
func verdict(bad, total int, first error) error {
	switch {
	case bad == 0:
		return nil
	case first != nil:
		return first
	case total == 1:
		return lock.Errorf(lock.Differs, "the lock is out of date")
	}
	return lock.Errorf(lock.Differs, "%d of %d locks are out of date", bad, total)
}

// verification verifies one job.
type verification struct {
	app     *app
	lock    *lock.Job
	reasons []string
	change  *screen.Difference // change of the plan; nil if the job has not changed
	diffs   []string
	remedy  string
	files   int
}

// run compares a job with its lock, and collects the reasons why the lock is out of date. It returns an error if it
// cannot compare them.
func (v *verification) run(path string, flags jobFlags) error {
	var args []string
	if path != "" {
		args = []string{path}
	}
	j, err := loadJob(v.app.Console, args, flags)
	if err != nil {
		return err
	}
	l, err := readLock(v.app.Console, j, false)
	if err != nil {
		return err
	}
	v.lock = l
	if l.File == nil {
		return l.AbsentError()
	}
	v.remedy, v.files = l.Remedy, len(l.File.Files)
	if v.files > 0 {
		v.remedy = genCommandLine(j, l.File)
	}
	if l.State() == lock.Stale {
		return v.compareStale(j)
	}
	d, err := j.obey(l)
	if err != nil {
		return err
	}
	return v.compare(d)
}

// compareStale compares a lock whose job has changed.
func (v *verification) compareStale(j *loaded) error {
	l := v.lock
	v.reasons = append(v.reasons, screen.ChangedSections(l.Changed))
	d, err := searchPlan(v.app.Console, j)
	now := &lock.File{Inputs: l.Inputs, Plan: l.File.Plan}
	if err == nil {
		d.lock, d.expect = l, lock.ExpectOf(d.Question, d.Best)
		v.change, now.Plan = screen.LockDifference(l, d.Question, d.Best), d.Best.Plan
	} else {
		first, _, _ := strings.Cut(err.Error(), "\n")
		v.reasons = append(v.reasons, "now "+first)
	}
	v.diffs = append(v.diffs, decisionDiff(l, now, j.path))
	if err != nil || v.files == 0 || d.NoPlan != nil || spec.CheckGenerate(j.Job) != nil {
		return nil
	}
	return v.compareCode(d, nil)
}

// compare compares a lock whose job has not changed.
func (v *verification) compare(d *decision) error {
	j, f := d.job, v.lock.File
	p, err := compileProgram(v.app.Console, j, d.Best.Plan, nil)
	if err != nil {
		return err
	}
	switch now := programHash(p); {
	case now != f.Program:
		v.reasons = append(v.reasons, "its plan compiles to another program: "+anotherProgram(f))
		v.diffs = append(v.diffs, programDiff(v.lock, now, shell.Slashed(j.path)))
	case f.Edited():
		v.reasons = append(v.reasons, planEdited)
	}
	if v.files == 0 {
		return nil
	}
	if err := spec.CheckGenerate(j.Job); err != nil {
		return err
	}
	return v.compareCode(d, f.Files)
}

// compareCode compares the generated files with the files on disk, and with the lock's hashes, if given.
func (v *verification) compareCode(d *decision, hashes map[string]string) error {
	for _, path := range slices.Sorted(maps.Keys(v.lock.File.Files)) {
		t, err := lockedTarget(d.job, v.lock, path)
		if err != nil {
			return err
		}
		g, err := regenerate(v.app.Console, d, t)
		if err != nil {
			return err
		}
		now := g.files[path]
		name := filepath.Join(t.folder, filepath.FromSlash(path))
		old, err := os.ReadFile(name)
		same := err == nil && sameText(old, now)
		switch {
		case missing(name):
			v.reasons = append(v.reasons, fmt.Sprintf("%s does not exist", shell.Slashed(name)))
		case err != nil:
			v.reasons = append(v.reasons, fmt.Sprintf("%s cannot be read: %s", shell.Slashed(name), ir.FileReason(err)))
		case same && hashes != nil && hashes[path] != lock.Hash(now):
			v.reasons = append(v.reasons, fmt.Sprintf("the lock has another hash of %s", shell.Slashed(name)))
		case !same && hashes != nil && hashes[path] == lock.Hash(now):
			v.reasons = append(v.reasons, fmt.Sprintf("%s was edited", shell.Slashed(name)))
		case !same && hashes != nil:
			v.reasons = append(v.reasons, fmt.Sprintf("%s is out of date, although the plan is the same",
				shell.Slashed(name)))
		}
		if !same {
			v.diffs = append(v.diffs, truncateDiff(v.app.Verbose, fileDiff(t.folder, path, now)))
		}
	}
	return nil
}

// lockedTarget returns the target that gen would use now for a file of the lock.
func lockedTarget(j *loaded, l *lock.Job, path string) (*target, error) {
	folder := filepath.Dir(j.path)
	t, err := findTarget(j, l, genRequest{out: filepath.Join(folder, filepath.Dir(filepath.FromSlash(path))),
		main: l.File.Gen.Main})
	if err != nil {
		return nil, err
	}
	t.key, t.pkg = path, l.File.Gen.Package
	return t, nil
}

// genCommandLine returns the command that updates a lock and its generated files.
func genCommandLine(j *loaded, f *lock.File) string {
	words := []string{"planc gen"}
	if path := shell.Slashed(j.path); path != jobFile {
		words = append(words, shell.QuotePath(path))
	}
	for _, path := range slices.Sorted(maps.Keys(f.Files)) {
		if dir := filepath.Dir(filepath.FromSlash(path)); dir != "." {
			words = append(words, "-o "+shell.QuotePath(filepath.Join(filepath.Dir(j.path), dir)))
		}
	}
	if f.Gen.Main {
		words = append(words, "--main")
	}
	return strings.Join(words, " ")
}

// codeLines is the number of lines to show of a diff of generated code. Reviewers look at the plan above it.
const codeLines = 40

// truncateDiff returns the beginning of a diff of code, or all of it.
func truncateDiff(isWhole bool, diff string) string {
	lines := strings.SplitAfter(diff, "\n")
	if isWhole || len(lines) <= codeLines {
		return diff
	}
	return strings.Join(lines[:codeLines], "") + fmt.Sprintf("... and %d more lines of this diff; -v shows all\n",
		len(lines)-codeLines-1)
}

// summary names the lock and what was compared.
func (v *verification) summary() string {
	s := v.lock.Name() + ": the plan, its program"
	switch {
	case v.files == 1:
		s += " and 1 generated file"
	case v.files > 1:
		s += fmt.Sprintf(" and %d generated files", v.files)
	}
	return s
}

// report formats the result for a reviewer: the reasons, the change of the plan, then the diffs.
func (v *verification) report() string {
	var b strings.Builder
	b.WriteString(layout.Prose(v.lock.Name()+" is out of date: ", 2, strings.Join(v.reasons, "; ")))
	if v.change != nil {
		b.WriteString(v.change.Review())
	}
	b.WriteString("to update it, run: " + v.remedy + "\n")
	for _, d := range v.diffs {
		b.WriteString("\n" + d)
	}
	return b.String()
}
