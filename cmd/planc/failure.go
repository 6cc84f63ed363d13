package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// planc's exit codes; contract.md says what each means.
const (
	exitDone   = 0
	exitFailed = 1 // the world
	exitInput  = 2 // the user's mistake
	exitNoFit  = 3 // no plan fits, or this is the wrong machine
	exitLock   = 4 // a lock differs or is absent
)

// Kinds of failure beside the user's mistakes, as --json names them.
const (
	// codeFailed is reported for what the world refuses: a folder that cannot be written, no go command. Exit 1.
	codeFailed ir.Code = "Failed"

	// codeBug is reported for a mistake of planc's own; please tell us. Exit 1.
	codeBug ir.Code = "Bug"

	// codeOtherMachine is reported for a job to run whose cluster this machine is not. Exit 3.
	codeOtherMachine ir.Code = "ForeignMachine"

	// codeBadData is reported for a data file that is there and cannot be trained on: empty, cut off, too short, or of
	// another kind.
	codeBadData ir.Code = "BadData"

	codeNoPlan = search.NoPlanCode
)

// noFitError is that nothing fits, or the plan that the user pinned does not.
type noFitError struct {
	message string // the first line
	detail  string // screen 5's further lines, "" if the document on stdout says it
	nearest []nearestChange
	shown   bool // the result, with fits: false, is on stdout already
}

func (e *noFitError) Error() string { return e.message }

// nearestChange is a change that would fit.
type nearestChange struct {
	Set     map[string]any    `json:"set"`
	Predict costmodel.Predict `json:"predict"`
}

// otherMachineError is that the job's cluster is not this machine.
type otherMachineError struct{ message string }

func (e *otherMachineError) Error() string { return e.message }

// exitStatus is the status of the binary that planc ran, which is ours then; it has spoken for itself.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// failureDoc is what --json prints of a failure.
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

// fail is the one place where errors become exit codes and messages.
func (a *app) fail(err error) int {
	if err == nil {
		return exitDone
	}
	var status exitStatus
	if errors.As(err, &status) {
		return int(status)
	}
	code, text, doc := classify(err)
	var unfit *noFitError
	var spoken *reportedError
	shown := errors.As(err, &unfit) && unfit.shown || errors.As(err, &spoken)
	if a.json && !shown {
		if err := a.printJSON(map[string]any{"error": doc}); err != nil {
			fmt.Fprintln(a.stderr, "planc:", err)
		}
	}
	fmt.Fprintln(a.stderr, text)
	return code
}

// classify says whose fault an error is: the exit code, the text for people, the document.
func classify(err error) (exit int, text string, doc failureDoc) {
	doc = failureDoc{Message: err.Error(), Diagnostics: []diagDoc{}, Nearest: []nearestChange{}}
	var diags ir.Diags
	var unfit *noFitError
	var away *otherMachineError
	var unlocked *lockError
	var ours *bugError
	var generated *build.CompileError
	var kernel *build.KernelError
	switch {
	case errors.As(err, &diags):
		exit, text = exitInput, folded(diagText(diags))
		doc.Code, doc.Message, doc.Diagnostics = diags[0].Code, diagSummary(diags), diagDocs(diags)
	case errors.As(err, &unfit):
		exit, doc.Code = exitNoFit, codeNoPlan
		text = folded("planc: " + unfit.message + " [NoPlan]")
		if unfit.detail != "" {
			text += "\n" + strings.TrimSuffix(unfit.detail, "\n")
		}
		if unfit.nearest != nil {
			doc.Nearest = unfit.nearest
		}
	case errors.As(err, &away):
		exit, doc.Code, text = exitNoFit, codeOtherMachine, folded("planc: "+err.Error())
	case errors.As(err, &unlocked):
		exit, doc.Code, text = exitLock, unlocked.code, folded("planc: "+err.Error()+" ["+string(unlocked.code)+"]")
	case errors.As(err, &ours), errors.As(err, &generated), errors.As(err, &kernel):
		exit, doc.Code, text = exitFailed, codeBug, err.Error()
	default:
		exit, doc.Code, text = exitFailed, codeFailed, folded("planc: "+err.Error())
	}
	return exit, text, doc
}

// diagText is a line a mistake; those without a place say who speaks.
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
	return fmt.Sprintf("%d mistakes; the first: %s", len(ds), ds[0])
}

func diagDocs(ds ir.Diags) []diagDoc {
	out := make([]diagDoc, len(ds))
	for i, d := range ds {
		out[i] = diagDoc{d.Pos.File, d.Pos.Line, d.Pos.Column, d.Code, d.Msg, d.Fix}
	}
	return out
}

// printJSON writes one document to stdout.
func (a *app) printJSON(v any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("planc: a document that cannot be printed: %v", err))
	}
	return a.print(b.String())
}
