package docs_test

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/ir/zoo/weights"
)

// weightTable returns the table of a catalogue model's parameters and their tensors in files.
func weightTable(name string) []string {
	c, err := spec.LoadModel(name, nil)
	if err != nil {
		return []string{err.Error()}
	}
	m := zoo.Build(name, *c, zoo.Options{SeqLen: 8, Batch: 1, Elem: ir.F32})
	dims := map[string]string{}
	for _, s := range m.Segments {
		for _, w := range s.Forward.Weights() {
			var list []string
			for _, d := range w.Type.Dims {
				list = append(list, fmt.Sprintf("%s %d", d.Dim, d.Size))
			}
			dims[s.Name+"."+w.Name] = strings.Join(list, ", ")
		}
	}
	rows := []string{"| tensor | shape | planc's parameter | dims |", "|---|---|---|---|"}
	for _, t := range weights.Locate(m, c).Tensors {
		var params, theirs []string
		for _, s := range t.Shares {
			params = append(params, "`"+s.Param+"`")
			theirs = append(theirs, dims[strings.Replace(s.Param, ".{layer}", "", 1)])
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %v | %s | %s |", t.Name, t.Shape, strings.Join(params, "<br>"),
			strings.Join(theirs, "<br>")))
	}
	return rows
}
