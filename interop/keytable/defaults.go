package keytable

import (
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/tree"
)

// ClearDefaults accounts for keys that planc does not support and that have their default value: they change nothing.
// The table has defaults as JSON.
func (r *Reader) ClearDefaults() {
	r.Doc.Root.Walk(func(path string, f *tree.Field) {
		row, ok := r.Table.Find(path)
		if !ok || row.Use != interop.Unsupported || row.Key != path {
			return
		}
		var text strings.Builder
		f.Value.WriteJSON(&text)
		isOff := row.Default == "null" && (text.String() == `""` || text.String() == "false")
		if text.String() == row.Default || isOff {
			r.Account(path, interop.NoEffect, "")
		}
	})
}
