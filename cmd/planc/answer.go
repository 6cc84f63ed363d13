package main

import "github.com/planc-dev/planc/cmd/planc/internal/screen"

// answer describes the output of plan or explain: what the command adds to the document, and how it renders the
// document.
type answer struct {
	lock     lockFlags
	complete func(*loaded, *screen.Document, *decision) error
	screen   func(*screen.Document) string
	brief    bool // if the lock is stale, print only the difference and not the screen
}

// answer decides the job's plan and prints the answer as a document or as a screen.
func (a *app) answer(args []string, f jobFlags, as answer) error {
	j, err := a.loadHere(args, f)
	if err == nil {
		err = a.save(j, f)
	}
	if err != nil {
		return err
	}
	found, err := a.ask(j, as.lock)
	if err != nil {
		return err
	}
	d := screen.NewDocument(j.Question, found.Decision, found.lock)
	d.Planc = version
	err = a.runSearches(func() error { d.FindTightFit(); return nil })
	if err != nil {
		return err
	}
	if err := as.complete(j, d, found); err != nil {
		return err
	}
	if err := a.show(j, d, found, as); err != nil {
		return err
	}
	if found.Unfit != nil {
		return noPlanFits(j, found.Unfit, true)
	}
	if as.lock.update {
		return a.update(j, found)
	}
	return nil
}

// show prints the answer.
func (a *app) show(j *loaded, d *screen.Document, found *decision, as answer) error {
	l := found.lock
	if a.json {
		return a.printJSON(d)
	}
	if l.File == nil || l.IsObeyed() && !as.lock.update {
		return a.print(as.screen(d))
	}
	last := "Nothing was written. To accept the new plan, repeat the command with --update."
	if as.lock.update {
		last = ""
	}
	text := screen.LockDifference(found.lock, j.Question, found.Best).Text(last)
	if !as.brief {
		text = as.screen(d) + "\n" + text
	}
	return a.print(text)
}

// update writes the lock of the plan that was found.
func (a *app) update(j *loaded, found *decision) error {
	p, err := a.program(j, found.Best.Plan, nil)
	if err != nil {
		return err
	}
	found.expect = j.expected(found.Best)
	l, f := found.lock, found.lock.NewFile(found.forLock(programHash(p)))
	if l.IsObeyed() && sameText(l.Text, f.Bytes()) {
		a.notef("%s is unchanged", l.Name())
		return nil
	}
	if err := a.writeLock(l, f); err != nil {
		return err
	}
	if j.overridden {
		a.notef("note: the lock is for the job as changed by flags; it does not hold until %s has the same values",
			slashed(j.path))
	}
	return nil
}
