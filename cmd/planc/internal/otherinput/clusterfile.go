package otherinput

import (
	"reflect"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// IsClusterFile reports whether a file is a cluster file, possibly with errors: it has only keys of clusters, and
// describes a device.
func IsClusterFile(path string, data []byte) bool {
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
