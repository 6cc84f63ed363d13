package main

import (
	"errors"
	"reflect"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// clusterAsJob says what to do with a cluster file that was given as JOB, as planc detect and calibrate write them, in
// place of all that it lacks as a job; nil if what is wrong is something else.
func (a *app) clusterAsJob(f jobFlags, path string, wrong error) error {
	if diags := (ir.Diags)(nil); path == "" || !errors.As(wrong, &diags) {
		return nil
	}
	data, err := a.read(path)
	if err != nil || !isClusterFile(path, data) {
		return nil
	}
	file := "FILE"
	if path != "-" {
		file = shellPath(path)
	}
	how := "a job names it, as cluster: " + file
	if f.quick != nil {
		how += ", or a flag does: " + f.cmd.CommandPath() + " JOB --cluster " + file
	}
	return ir.Diags{{Pos: ir.Pos{File: path}, Code: strict.WrongType,
		Msg: "this is a cluster file, and a job file is wanted; " + how}}
}

// isClusterFile tells whether a file is a cluster's, perhaps with mistakes: it has no other keys, and says what a
// device is.
func isClusterFile(path string, data []byte) bool {
	doc, _ := strict.Parse(path, data)
	keys := strict.Keys(reflect.TypeFor[costmodel.Cluster]())
	for _, f := range doc.Root.Fields {
		if !slices.Contains(keys, f.Key) {
			return false
		}
	}
	_, err := costmodel.ParseCluster(path, data)
	return err == nil || doc.Root.Get("gpu") != nil
}
