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
		if text.String() == row.Default || row.Default == "null" && text.String() == `""` {
			r.Account(path, interop.NoEffect, "")
		}
	})
}
