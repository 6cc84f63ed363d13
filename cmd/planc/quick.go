package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// quickFlag returns the flag that sets a field; "" if only --set does. --cluster also takes the short form of a whole
// cluster, 16xh100.
func quickFlag(key string) string {
	if key == "cluster" {
		key = "cluster.node"
	}
	for _, q := range spec.Quick {
		if q.Key == key {
			return "--" + q.Flag
		}
	}
	return ""
}

// byFlags rewrites input errors in terms of flags: it names the flag that gives a missing field if there is no job
// file, and the flag of a suggested value if the wrong value came from a flag.
func byFlags(path string, err error) error {
	var diags ir.Diags
	if !errors.As(err, &diags) {
		return err
	}
	diags = slices.Clone(diags)
	for i := range diags {
		d := &diags[i]
		key, _, _ := strings.Cut(d.Msg, " ")
		if flag := quickFlag(key); path == "" && d.Code == spec.Missing && flag != "" {
			d.Msg += "; " + flag + " gives it"
		}
		key, value, _ := strings.Cut(d.Fix, "=")
		if flag := quickFlag(key); strict.IsFlag(d.Pos) && value != "" && flag != "" {
			d.Fix = flag + " " + value
		}
	}
	return diags
}
