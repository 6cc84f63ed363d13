package main

import (
	"errors"
	"reflect"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// clusterAsJob returns an error that explains how to use a cluster file, as written by planc detect or calibrate, that
// was given as JOB. It replaces the errors of reading the file as a job; nil if the file is not a cluster file.
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
	how := "name it in a job (cluster: " + file + ")"
	if f.quick != nil {
		how += ", or by a flag: " + f.cmd.CommandPath() + " JOB --cluster " + file
	}
	return ir.Diags{{Pos: ir.Pos{File: path}, Code: strict.WrongType,
		Msg: "this is a cluster file, and JOB must be a job file; " + how}}
}

// isClusterFile reports whether a file is a cluster file, possibly with errors: it has only keys of clusters, and
// describes a device.
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
