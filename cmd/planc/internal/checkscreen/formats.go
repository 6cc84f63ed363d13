package checkscreen

import (
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/interop"
)

// Formats lists formats: their names, whether they are read, written or both, and the engine that is priced.
func Formats(all []*interop.Format) string {
	var rows [][]string
	for _, f := range all {
		use := "read and written"
		switch {
		case f.Import == nil:
			use = "written"
		case f.Write == nil:
			use = "read"
		}
		engine := f.Engine
		if engine == "" {
			engine = "any"
		}
		rows = append(rows, []string{f.Name, use, engine, f.Title})
		if f.Written != "" {
			rows = append(rows, []string{"", "", "", "export without --like: " + f.Written})
		}
	}
	columns := []layout.Column{layout.Left("FORMAT"), layout.Left("FILES ARE"), layout.Left("ENGINE"),
		layout.Left("FILE")}
	return layout.Table(columns, rows)
}
