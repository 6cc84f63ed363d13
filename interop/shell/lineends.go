package shell

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/planc-dev/planc/ir"
)

// LineEnds reports the first line of a script that ends in CR LF. For bash, the CR is part of the line's last word, and
// a backslash in front of it does not continue the line.
func LineEnds(file string, source []byte) ir.Diags {
	at := bytes.Index(source, []byte("\r\n"))
	if at < 0 {
		return nil
	}
	before := source[:at]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	pos := ir.Pos{File: file, Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(line) + 1}
	command := fmt.Sprintf("sed -i 's/\\r$//' %s", file)
	if file == "-" {
		command = "sed 's/\\r$//'"
	}
	return ir.Diags{{Pos: pos, Code: BadScript, Msg: "this line ends in CR LF, as on Windows, and bash takes the CR " +
		"as a part of the command: remove it from all lines with " + command}}
}
