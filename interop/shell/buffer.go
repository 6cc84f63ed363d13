package shell

import (
	"slices"
	"sort"
	"unicode/utf8"

	"github.com/planc-dev/planc/ir"
)

// buffer has the text of a script and of the files that it sources, one after the other, so that spans work in all.
type buffer struct {
	files  []sourceFile // the script, then the files that it sources
	source []byte       // the text of all files, each ended by a line end
	lines  []int        // offset of each line
}

// sourceFile is a file's part of the buffer.
type sourceFile struct {
	name       string
	start, end int
	firstLine  int // index into buffer.lines
}

// At returns the position of an offset.
func (b *buffer) At(offset int) ir.Pos {
	if offset < 0 {
		return ir.Pos{File: b.files[0].name}
	}
	f := b.fileAt(offset)
	line, found := slices.BinarySearch(b.lines, offset)
	if !found {
		line--
	}
	line = max(line, f.firstLine)
	before := b.source[b.lines[line]:max(b.lines[line], min(offset, f.end))]
	column := len(before)
	const longest = 1 << 12 // longer lines are counted in bytes, so that a line of 10 MB takes no hours
	if column < longest {
		column = utf8.RuneCount(before)
	}
	return ir.Pos{File: f.name, Line: line - f.firstLine + 1, Column: column + 1}
}

// add adds a file to the buffer.
func (b *buffer) add(name string, data []byte) {
	if n := len(b.source); n > 0 && b.source[n-1] != '\n' {
		b.source = append(slices.Clip(b.source), '\n')
	}
	start := len(b.source)
	b.files = append(b.files, sourceFile{name, start, start + len(data), len(b.lines)})
	b.lines = append(b.lines, start)
	for i, c := range data {
		if c == '\n' {
			b.lines = append(b.lines, start+i+1)
		}
	}
	if start == 0 {
		b.source = data
		return
	}
	b.source = append(slices.Clip(b.source), data...)
}

// fileAt returns the file that has an offset.
func (b *buffer) fileAt(offset int) *sourceFile {
	after := sort.Search(len(b.files), func(i int) bool { return b.files[i].start > offset })
	return &b.files[max(0, after-1)]
}

// main returns the text of the script itself.
func (b *buffer) main() []byte { return b.source[:b.files[0].end] }

// Files returns the names of the files that were read: the script, then those that it sources.
func (b *buffer) Files() (names []string) {
	for i := range b.files {
		names = append(names, b.files[i].name)
	}
	return names
}
