package layout

import "strings"

// Column describes a column of a table. It is as wide as its widest cell. The last column is wrapped if it is
// left-aligned.
type Column struct {
	Title string
	right bool // right-aligned, for numbers
	// limit is the width above which a cell has a line of its own; 0: none. Only the first column has it.
	limit int
}

// LeftUpTo returns a first column of texts, of which those that are wider than limit have a line of their own.
func LeftUpTo(title string, limit int) Column { return Column{Title: title, limit: limit} }

// isWide reports whether a cell has a line of its own.
func (c Column) isWide(cell string) bool { return c.limit > 0 && Width(cell) > c.limit }

// Left returns a column of texts.
func Left(title string) Column { return Column{Title: title} }

// Right returns a column of numbers.
func Right(title string) Column { return Column{Title: title, right: true} }

const ColumnGap = 2

// Table formats rows under the titles of their columns.
func Table(columns []Column, rows [][]string) string {
	widths := widthsOf(columns, rows)
	var b strings.Builder
	line := func(cells []string) {
		begin, last := "", len(columns)-1
		if columns[0].isWide(cells[0]) {
			b.WriteString(cells[0] + "\n")
			cells = append([]string{""}, cells[1:]...)
		}
		for i := range last {
			begin += aligned(columns[i], cells[i], widths[i]) + strings.Repeat(" ", ColumnGap)
		}
		if columns[last].right {
			b.WriteString(strings.TrimRight(begin+PadLeft(cells[last], widths[last]), " ") + "\n")
			return
		}
		b.WriteString(Prose(begin, Width(begin), cells[last]))
	}
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.Title
	}
	line(titles)
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

// widthsOf returns the widths of columns. Rows may have cells for further columns.
func widthsOf(columns []Column, rows [][]string) []int {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = Width(c.Title)
		for _, r := range rows {
			if !c.isWide(r[i]) {
				widths[i] = max(widths[i], Width(r[i]))
			}
		}
	}
	return widths
}

// TableWidth returns the position where a further column would begin.
func TableWidth(columns []Column, rows [][]string) (sum int) {
	for _, w := range widthsOf(columns, rows) {
		sum += w + ColumnGap
	}
	return sum
}

func aligned(c Column, cell string, n int) string {
	if c.right {
		return PadLeft(cell, n)
	}
	return Pad(cell, n)
}
