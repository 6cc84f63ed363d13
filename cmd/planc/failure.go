package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/cmd/planc/internal/process"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// planc's exit codes, see `planc help exit`.
const (
	exitDone   = 0
	exitFailed = 1 // an error of the environment, or a bug
	exitInput  = 2 // an input error
	exitNoFit  = 3 // no plan fits, or the job is for another machine
	exitLock   = 4 // a lock differs or is missing
)

// Codes of failures that are not input errors, as --json prints them.
const (
	// codeFailed is reported for an error of the environment: a folder that cannot be written, no go command. Exit 1.
	codeFailed ir.Code = "Failed"

	// codeBug is reported for a bug in planc; please report it. Exit 1.
	codeBug ir.Code = "Bug"

	// codeOtherMachine is reported for planc run if the job's cluster is another machine. Exit 3.
	codeOtherMachine ir.Code = "ForeignMachine"

	// codeBadData is reported for a data file that cannot be used for training: it is empty, truncated, too short, or
	// of an unknown kind.
	codeBadData ir.Code = "BadData"

	// codeBadCheckpoint is reported for a checkpoint that is damaged or incomplete.
	codeBadCheckpoint ir.Code = "BadCheckpoint"

	codeNoPlan = search.NoPlanCode
)

// noPlanError reports that no plan fits, or that the pinned plan does not.
type noPlanError struct {
	message string // the first line
	detail  string // further lines; "" if the document on stdout contains them
	nearest []nearestChange
	shown   bool // the result, with fits: false, has been printed on stdout
}

func (e *noPlanError) Error() string { return e.message }

// nearestChange is a change of the job with which a plan fits.
type nearestChange struct {
	Set     map[string]any    `json:"set"`
	Predict costmodel.Predict `json:"predict"`
}

// otherMachineError reports that the job's cluster is not this machine.
type otherMachineError struct{ message string }

func (e *otherMachineError) Error() string { return e.message }

// failureDoc is the document that --json prints for a failure.
type failureDoc struct {
	Code        ir.Code         `json:"code"`
	Message     string          `json:"message"`
	Diagnostics []diagDoc       `json:"diagnostics"`
	Nearest     []nearestChange `json:"nearest"`
}

type diagDoc struct {
	File    string  `json:"file"`
	Line    int     `json:"line"`
	Column  int     `json:"column"`
	Code    ir.Code `json:"code"`
	Message string  `json:"message"`
	Fix     string  `json:"fix"`
}

// fail prints an error and returns its exit code. It is the only place where errors become messages.
func (a *app) fail(err error) int {
	if err == nil {
		return exitDone
	}
	var status process.ExitStatus
	if errors.As(err, &status) {
		return int(status)
	}
	code, text, doc := classify(err)
	var noPlan *noPlanError
	var spoken *reportedError
	shown := errors.As(err, &noPlan) && noPlan.shown || errors.As(err, &spoken)
	if a.json && !shown {
		if err := a.PrintJSON(map[string]any{"error": doc}); err != nil {
			fmt.Fprintln(a.Stderr, "planc:", err)
		}
	}
	fmt.Fprintln(a.Stderr, text)
	return code
}

// classify returns the exit code of an error, its message, and its document.
func classify(err error) (exit int, text string, doc failureDoc) {
	doc = failureDoc{Message: err.Error(), Diagnostics: []diagDoc{}, Nearest: []nearestChange{}}
	var diags ir.Diags
	var noPlan *noPlanError
	var away *otherMachineError
	var unlocked *lock.Error
	var ours *bugError
	var generated *build.CompileError
	var kernel *build.KernelError
	switch {
	case errors.As(err, &diags):
		exit, text = exitInput, layout.Fold(diagText(diags))
		doc.Code, doc.Message, doc.Diagnostics = diags[0].Code, diagSummary(diags), diagDocs(diags)
	case errors.As(err, &noPlan):
		exit, doc.Code = exitNoFit, codeNoPlan
		text = layout.Fold("planc: " + noPlan.message + " [NoPlan]")
		if noPlan.detail != "" {
			text += "\n" + strings.TrimSuffix(noPlan.detail, "\n")
		}
		if noPlan.nearest != nil {
			doc.Nearest = noPlan.nearest
		}
	case errors.As(err, &away):
		exit, doc.Code, text = exitNoFit, codeOtherMachine, layout.Fold("planc: "+err.Error())
	case errors.As(err, &unlocked):
		exit, doc.Code, text = exitLock, unlocked.Code,
			layout.Fold("planc: "+err.Error()+" ["+string(unlocked.Code)+"]")
	case errors.As(err, &ours), errors.As(err, &generated), errors.As(err, &kernel):
		exit, doc.Code, text = exitFailed, codeBug, err.Error()
	default:
		exit, doc.Code, text = exitFailed, codeFailed, layout.Fold("planc: "+err.Error())
	}
	return exit, text, doc
}

// diagText formats input errors, one per line. Those without a position start with "planc".
func diagText(ds ir.Diags) string {
	var lines []string
	for _, d := range ds {
		line := d.String()
		if d.Pos == (ir.Pos{}) && !strings.HasPrefix(line, "planc ") {
			line = "planc: " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func diagSummary(ds ir.Diags) string {
	if len(ds) == 1 {
		return ds[0].String()
	}
	return fmt.Sprintf("%d input errors; the first: %s", len(ds), ds[0])
}

func diagDocs(ds ir.Diags) []diagDoc {
	out := make([]diagDoc, len(ds))
	for i, d := range ds {
		out[i] = diagDoc{d.Pos.File, d.Pos.Line, d.Pos.Column, d.Code, d.Msg, d.Fix}
	}
	return out
}
