package megatron

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/shell"
)

// mostRuns is the number of commands whose lines a note names.
const mostRuns = 4

// noteOtherRuns notes that the script starts the program several times with different arguments.
func (src *source) noteOtherRuns(launches []shell.Launch) {
	own := src.launcher
	isWord := func(a, b shell.Word) bool { return a.Text() == b.Text() }
	lines := []string{strconv.Itoa(src.script.At(own.Offset()).Line)}
	for i := range launches {
		l := &launches[i]
		if l.Program != own.Program || slices.EqualFunc(l.Command.Words, own.Command.Words, isWord) {
			continue
		}
		line := strconv.Itoa(src.script.At(l.Offset()).Line)
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
		if len(lines) == mostRuns {
			break
		}
	}
	if len(lines) == 1 {
		return
	}
	src.notes = append(src.notes, interop.Note{Pos: src.script.At(own.Offset()), Text: fmt.Sprintf("the script starts "+
		"%s with different arguments in lines %s: planc reads and edits the command in line %s", own.Program,
		interop.Joined(lines), lines[0])})
}
