package main

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/otherinput"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/planner"
)

// jobFile is what JOB is by default, and in a folder.
const jobFile = "planc.yaml"

// loaded is a job with its hardware, and where it came from.
type loaded struct {
	*planner.Question
	catalogue  *loaded // the same job at the catalogue's rates, if MeasuredCPU is set
	path       string  // of the job file; "" of a question by flags alone, "-" of standard input
	overridden bool    // by flags: it is not what the file says
}

// loadJob reads the job that the arguments and flags mean, and its cluster. It depends on no measurement of this
// machine: a lock and generated code are the same bytes on every machine. Screens use loadHere.
func loadJob(ui *console.Console, args []string, f jobFlags) (*loaded, error) {
	j, err := readJob(ui, args, f)
	if err == nil {
		j.printNotes(ui)
	}
	return j, err
}

// readJob is loadJob without the job's notes.
func readJob(ui *console.Console, args []string, f jobFlags) (*loaded, error) {
	path, err := f.path(args)
	if err != nil {
		return nil, err
	}
	if err := checkOtherJob(ui, path); err != nil {
		return nil, err
	}
	if err := sharedLock(path); err != nil {
		return nil, err
	}
	q, err := planner.Load(path, ui.Read, f.overrides()...)
	if cluster := clusterAsJob(ui, f, path, err); cluster != nil {
		return nil, cluster
	}
	if err != nil {
		return nil, byFlags(path, err)
	}
	return &loaded{Question: q, path: path, overridden: len(f.overrides()) > 0}, nil
}

// printNotes prints the job's notes.
func (j *loaded) printNotes(ui *console.Console) {
	for _, note := range j.Notes() {
		ui.Notef("note: %s", note)
	}
}

// checkOtherJob returns an error if a file is not a job but a model or a file of another tool.
func checkOtherJob(ui *console.Console, path string) error {
	if path == "" || path == "-" {
		return nil
	}
	data, err := ui.Read(path)
	if err != nil {
		return nil // reading the job says why
	}
	neighbor := ""
	if filepath.Ext(path) == ".toml" {
		neighbor = jobNextTo(path)
	}
	return otherinput.Check(path, data, neighbor)
}

// jobNextTo returns the job with the same name in the folder of a file; "" if there is none.
func jobNextTo(path string) string {
	for _, ext := range lockedExtensions {
		if job := strings.TrimSuffix(path, filepath.Ext(path)) + ext; !missing(job) {
			return shell.Slashed(job)
		}
	}
	return ""
}

// clusterAsJob returns an error that explains how to use a cluster file, as written by planc detect or calibrate, that
// was given as JOB. It replaces the errors of reading the file as a job; nil if the file is not a cluster file.
func clusterAsJob(ui *console.Console, f jobFlags, path string, wrong error) error {
	if diags := (ir.Diags)(nil); path == "" || !errors.As(wrong, &diags) {
		return nil
	}
	data, err := ui.Read(path)
	if err != nil || !otherinput.IsClusterFile(path, data) {
		return nil
	}
	file := "FILE"
	if path != "-" {
		file = shell.QuotePath(path)
	}
	how := "name it in a job (cluster: " + file + ")"
	if f.quick != nil {
		how += ", or by a flag: " + f.cmd.CommandPath() + " JOB --cluster " + file
	}
	return ir.Diags{{Pos: ir.Pos{File: path}, Code: strict.WrongType,
		Msg: "this is a cluster file, and JOB must be a job file; " + how}}
}
