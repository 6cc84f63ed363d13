package validate

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// cells are the cells of a row that are not empty, by column.
type cells map[string]string

// Text returns a cell, "" if it is empty.
func (c cells) Text(column string) string { return c[column] }

// lower returns a cell in lower case.
func (c cells) lower(column string) string { return strings.ToLower(c[column]) }

// number matches a number at the start of a cell, with an optional suffix K, M, B or T and a unit after it.
var number = regexp.MustCompile(
	`^([-+]?[0-9][0-9,_]*\.?[0-9]*(?:e[-+]?[0-9]+)?|\.[0-9]+)\s*([kmbt]?)(?:[^a-z0-9.]|$|[a-z/])`)

var suffixes = map[string]float64{"": 1, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}

// float returns a cell's number; ok is false if it has none.
func (c cells) float(column string) (v float64, ok bool) {
	m := number.FindStringSubmatch(c.lower(column))
	if m == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.NewReplacer(",", "", "_", "").Replace(m[1]), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, false
	}
	return v * suffixes[m[2]], true
}

// measure returns a positive quantity with an optional unit: "12.5 s", "80 GB". Letters after it are not multipliers.
func (c cells) measure(column string) float64 {
	text := strings.TrimRight(c.lower(column), "abcdefghijklmnopqrstuvwxyz/ ")
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// count returns a whole number of at least 0; otherwise if the cell has none.
func (c cells) count(column string, otherwise int) int {
	v, ok := c.float(column)
	if !ok || v < 0 || v > 1e12 || v != math.Trunc(v) {
		return otherwise
	}
	return int(v)
}

// truth returns the value of a yes/no cell.
func (c cells) truth(column string, otherwise bool) bool {
	switch c.lower(column) {
	case "1", "true", "yes", "y", "on", "1.0":
		return true
	case "0", "false", "no", "n", "off", "none", "0.0":
		return false
	}
	return otherwise
}
