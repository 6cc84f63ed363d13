package tree

import (
	"slices"
	"sort"
	"unicode/utf8"
)

// index converts between bytes of a text and lines with columns. Columns count characters from 1. Its time for one
// position does not depend on the length of a line, because files may be one line.
type index struct {
	text  string
	lines []int // the offset of each line
	runes []int // the number of characters before each block
}

// blockBytes is the length of a block of text. Characters in front of a block are counted once for the whole file.
const blockBytes = 256

func newIndex(text string) index {
	x := index{text: text, lines: []int{0}}
	count := 0
	for i := range len(text) {
		if i%blockBytes == 0 {
			x.runes = append(x.runes, count)
		}
		if text[i] == '\n' {
			x.lines = append(x.lines, i+1)
		}
		if utf8.RuneStart(text[i]) {
			count++
		}
	}
	x.runes = append(x.runes, count)
	return x
}

// position returns the line and the column of an offset.
func (x index) position(offset int) (line, column int) {
	offset = min(offset, len(x.text))
	i := sort.SearchInts(x.lines, offset+1) - 1
	return i + 1, x.characters(offset) - x.characters(x.lines[i]) + 1
}

// column returns the number of bytes between the start of its line and an offset.
func (x index) column(offset int) int { return offset - x.lines[sort.SearchInts(x.lines, offset+1)-1] }

// characters returns the number of characters that start before an offset.
func (x index) characters(offset int) int {
	block := offset / blockBytes
	if block >= len(x.runes) {
		return x.runes[len(x.runes)-1]
	}
	count := x.runes[block]
	for i := block * blockBytes; i < offset; i++ {
		if utf8.RuneStart(x.text[i]) {
			count++
		}
	}
	return count
}

// offset returns the byte of a line and a column, and the end of the text if the text has no such character.
func (x index) offset(line, column int) int {
	if line < 1 || line > len(x.lines) {
		return len(x.text)
	}
	want := x.characters(x.lines[line-1]) + column - 1
	block, _ := slices.BinarySearch(x.runes, want+1)
	block--
	at, count := block*blockBytes, x.runes[block]
	for at < len(x.text) && (count < want || !utf8.RuneStart(x.text[at])) {
		if utf8.RuneStart(x.text[at]) {
			count++
		}
		at++
	}
	return min(at, len(x.text))
}
