package main

import "strings"

// column describes a column of a table. It is as wide as its widest cell. The last column is wrapped if it is
// left-aligned.
type column struct {
	title string
	right bool // right-aligned, for numbers
}

const columnGap = 2

// table formats rows under the titles of their columns.
func table(columns []column, rows [][]string) string {
	widths := widthsOf(columns, rows)
	var b strings.Builder
	line := func(cells []string) {
		left, last := "", len(columns)-1
		for i := range last {
			left += aligned(columns[i], cells[i], widths[i]) + strings.Repeat(" ", columnGap)
		}
		if columns[last].right {
			b.WriteString(strings.TrimRight(left+lpad(cells[last], widths[last]), " ") + "\n")
			return
		}
		b.WriteString(prose(left, width(left), cells[last]))
	}
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	line(titles)
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

// widthsOf returns the widths of columns. Rows may have cells for further columns.
func widthsOf(columns []column, rows [][]string) []int {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = width(c.title)
		for _, r := range rows {
			widths[i] = max(widths[i], width(r[i]))
		}
	}
	return widths
}

// tableWidth returns the position where a further column would begin.
func tableWidth(columns []column, rows [][]string) (sum int) {
	for _, w := range widthsOf(columns, rows) {
		sum += w + columnGap
	}
	return sum
}

func aligned(c column, cell string, n int) string {
	if c.right {
		return lpad(cell, n)
	}
	return pad(cell, n)
}
