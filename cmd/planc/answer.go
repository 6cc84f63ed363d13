package main

import (
	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/cmd/planc/internal/screen"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
)

// answer describes the output of plan or explain: what the command adds to the document, and how it renders the
// document.
type answer struct {
	lock     lockFlags
	complete func(*screen.Document, *decision) error
	screen   func(*screen.Document) string
	brief    bool // if the lock is stale, print only the difference and not the screen
}

// answerJob decides the job's plan and prints the answer as a document or as a screen.
func answerJob(a *app, args []string, f jobFlags, as answer) error {
	j, err := loadJobHere(a.Console, args, f)
	if err == nil {
		err = saveJob(a.Console, j, f)
	}
	if err != nil {
		return err
	}
	found, err := askPlan(a, j, as.lock)
	if err != nil {
		return err
	}
	d := screen.NewDocument(found.Question, found.Decision, found.lock)
	d.Planc = version
	err = a.RunSearches(func() error { d.FindTightFit(); return nil })
	if err != nil {
		return err
	}
	if err := as.complete(d, found); err != nil {
		return err
	}
	if err := showAnswer(a, d, found, as); err != nil {
		return err
	}
	if found.NoPlan != nil {
		return newJobNoPlanError(found.job, found.NoPlan, true)
	}
	if as.lock.update {
		return updateLock(a.Console, found)
	}
	return nil
}

// showAnswer prints the answer.
func showAnswer(a *app, d *screen.Document, found *decision, as answer) error {
	l := found.lock
	if a.json {
		return a.PrintJSON(d)
	}
	if l.File == nil || l.IsObeyed() && !as.lock.update {
		return a.Print(as.screen(d))
	}
	last := "Nothing was written. To accept the new plan, repeat the command with --update."
	if as.lock.update {
		last = ""
	}
	text := screen.LockDifference(found.lock, found.Question, found.Best).Text(last)
	if !as.brief {
		text = as.screen(d) + "\n" + text
	}
	return a.Print(text)
}

// updateLock writes the lock of the plan that was found.
func updateLock(ui *console.Console, found *decision) error {
	p, err := compileProgram(ui, found.job, found.Best.Plan, nil)
	if err != nil {
		return err
	}
	found.expect = lock.ExpectOf(found.Question, found.Best)
	l, f := found.lock, found.lock.NewFile(found.forLock(programHash(p)))
	if l.IsObeyed() && sameText(l.Text, f.Bytes()) {
		ui.Notef("%s is unchanged", l.Name())
		return nil
	}
	if err := writeLock(ui, l, f); err != nil {
		return err
	}
	j := found.job
	if j.overridden {
		ui.Notef("note: the lock is for the job as changed by flags; it does not hold until %s has the same values",
			shell.Slashed(j.path))
	}
	return nil
}
