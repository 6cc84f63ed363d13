package tree

import (
	"slices"
	"strings"
)

// end returns the offset after a field.
func (f *Field) end() int { return max(f.End, f.Value.End) }

// insertFlow inserts a field between brackets.
func (e editor) insertFlow(n *Node, f *Field) ([]change, error) {
	fields := n.ownFields()
	if len(fields) == 0 {
		return e.insertFirst(n, f)
	}
	next := related(fields, f.Key)
	ownLine := e.isBlankBefore(next.Start)
	indent, gap := "", " "
	if ownLine {
		indent = e.text[e.lineStart(next.Start):next.Start]
		gap = "\n" + indent
	}
	entry, err := e.entry(f, indent, ownLine && e.syntax.isJSON())
	if err != nil {
		return nil, err
	}
	after, ok := e.comma(next.end())
	if !ok && e.breaksLines(fields, next) {
		return []change{insertAt(e.lineEnd(next.end()), "\n"+indent+entry)}, nil
	}
	if !ok {
		gap = "," + gap
		if ownLine && e.isBlankAfter(next.end()) && e.lineEnd(next.end()) > next.end() {
			return []change{{next.end(), next.end(), ","}, insertAt(e.lineEnd(next.end()), gap[1:]+entry)}, nil
		}
		return []change{insertAt(next.end(), gap+entry)}, nil
	}
	if ownLine && e.isBlankAfter(after) {
		after = e.lineEnd(after)
	}
	return []change{insertAt(after, gap+entry+",")}, nil
}

// breaksLines reports whether line breaks separate the fields of a map, as Hjson allows.
func (e editor) breaksLines(fields []*Field, next *Field) bool {
	_, hasComma := e.comma(fields[0].end())
	isUsed := next.Value.bare || len(fields) > 1 && !hasComma
	return e.syntax == Hjson && isUsed && e.isBlankAfter(next.end())
}

func insertAt(at int, text string) change { return change{at, at, text} }

// insertFirst inserts a field into a map without fields.
func (e editor) insertFirst(n *Node, f *Field) ([]change, error) {
	if n.Start == n.End {
		entry, err := e.entry(f, e.unit(), true)
		return []change{insertAt(n.End, "{\n"+e.unit()+entry+"\n}\n")}, err
	}
	line := e.text[e.lineStart(n.Start):n.Start]
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	isLong := e.syntax.isJSON() && strings.TrimSpace(e.text[n.Start+1:n.End-1]) == ""
	entry, err := e.entry(f, indent+e.unit(), isLong)
	if isLong {
		return []change{{n.Start, n.End, "{\n" + indent + e.unit() + entry + "\n" + indent + "}"}}, err
	}
	return []change{insertAt(n.Start+1, entry)}, err
}

// insertBlock inserts a field of YAML as a line of its own.
func (e editor) insertBlock(n *Node, f *Field) ([]change, error) {
	fields := n.ownFields()
	if len(fields) == 0 {
		if n != e.doc.Root {
			return nil, e.doc.errorf(n.Pos, "%s cannot be added to a mapping that has only merged keys", f.Key)
		}
		lines, err := e.blockLines(f, "")
		return []change{insertAt(len(e.text), e.freshLine(len(e.text))+lines+"\n")}, err
	}
	indent := strings.Repeat(" ", fields[0].Start-e.lineStart(fields[0].Start))
	lines, err := e.blockLines(f, indent)
	next := related(fields, f.Key)
	return []change{insertAt(e.lineEnd(next.end()), "\n"+lines)}, err
}

// insertTable inserts a field into a table of TOML: a value as a line, a map as a table of its own.
func (e editor) insertTable(n *Node, path string, f *Field) ([]change, error) {
	if isMap(f.Value) {
		lines, err := e.tableLines(joinPath(path, f.Key), f.Value)
		return []change{insertAt(len(e.text), e.freshLine(len(e.text))+e.blankLine()+lines)}, err
	}
	entry, err := e.entry(f, "", false)
	if err != nil {
		return nil, err
	}
	direct := slices.DeleteFunc(n.ownFields(), func(g *Field) bool { return g.header || g.Value.layout == table })
	switch {
	case len(direct) > 0:
		next := related(direct, f.Key)
		indent := e.text[e.lineStart(next.Start):next.Start]
		if strings.TrimSpace(indent) != "" {
			return nil, e.doc.errorf(n.Pos, "%s cannot be added here", f.Key)
		}
		return []change{insertAt(e.lineEnd(next.end()), "\n"+indent+next.dotted+entry)}, nil
	case n.body > 0:
		return []change{insertAt(e.lineEnd(n.Start), "\n"+entry)}, nil
	case len(n.Fields) == 0:
		return []change{insertAt(len(e.text), e.freshLine(len(e.text))+entry+"\n")}, nil
	}
	first := e.lineStart(firstStart(n))
	if n != e.doc.Root {
		entry = "[" + e.tableKey(path) + "]\n" + entry
	}
	return []change{insertAt(first, entry+"\n\n")}, nil
}

// firstStart returns the offset of the first header or key of a table.
func firstStart(n *Node) int {
	start := n.Fields[0].Start
	for _, f := range n.Fields {
		start = min(start, f.Start)
	}
	return start
}

// removeFlow deletes a field between brackets, with its comma.
func (e editor) removeFlow(n *Node, f *Field) []change {
	after, ok := e.comma(f.end())
	ownLine := e.isBlankBefore(f.Start) && e.isBlankAfter(after)
	whole := change{e.lineStart(f.Start), e.nextLine(after), ""}
	i := slices.Index(n.Fields, f)
	switch {
	case ok && ownLine:
		return []change{whole}
	case ok:
		for after < len(e.text) && e.text[after] == ' ' {
			after++
		}
		return []change{{f.Start, after, ""}}
	case i == 0 && ownLine:
		return []change{whole}
	case i == 0:
		return []change{{f.Start, f.end(), ""}}
	}
	before, ok := e.comma(n.Fields[i-1].end())
	switch {
	case !ok && ownLine:
		return []change{whole}
	case !ok:
		return []change{{f.Start, f.end(), ""}}
	case ownLine && before <= whole.start:
		return []change{{before - 1, before, ""}, whole}
	}
	return []change{{before - 1, f.end(), ""}}
}

// removeBlock deletes a field of YAML with its lines. A map that has no other field becomes {}.
func (e editor) removeBlock(n *Node, f *Field) []change {
	fields := n.ownFields()
	i := slices.Index(fields, f)
	switch {
	case len(fields) == 1 && n != e.doc.Root:
		start, text := e.afterColon(n, "{}")
		return []change{{start, n.End, text}}
	case !e.isBlankBefore(f.Start) && i+1 < len(fields):
		return []change{{f.Start, fields[i+1].Start, ""}}
	}
	return []change{{e.lineStart(f.Start), e.nextLine(f.end()), ""}}
}

// removeTable deletes a field of TOML with its lines. A table goes with all lines up to the next header.
func (e editor) removeTable(f *Field) []change {
	if f.Value.layout != table {
		return []change{{e.lineStart(f.Start), e.nextLine(f.end()), ""}}
	}
	var changes []change
	e.removeTables(f, &changes)
	return changes
}

// removeTables deletes the header of a table, its keys, and the tables in it.
func (e editor) removeTables(f *Field, changes *[]change) {
	maps := append([]*Node{f.Value}, f.Value.Items...)
	for _, n := range maps {
		if n.body > 0 {
			*changes = append(*changes, change{e.lineStart(n.Start), e.nextLine(n.body), ""})
		}
		for _, g := range n.Fields {
			if g.Value.layout == table {
				e.removeTables(g, changes)
				continue
			}
			*changes = append(*changes, change{e.lineStart(g.Start), e.nextLine(g.end()), ""})
		}
	}
}
