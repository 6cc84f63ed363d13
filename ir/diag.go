package ir

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Pos is a position in a user's file or in a model builder. Lines and columns start at 1; 0 means unknown.
type Pos struct {
	File         string
	Line, Column int
}

func (p Pos) String() string {
	file := oneLine.Replace(p.File)
	switch {
	case file == "" && p.Line == 0:
		return ""
	case p.Line == 0:
		return file
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", file, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", file, p.Line, p.Column)
}

// oneLine escapes line breaks in a file's name, so that it cannot imitate several lines of messages.
var oneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`)

// Code identifies a kind of input error. It never changes once released.
type Code string

// Diag is one input error: its position, its kind, what is wrong, and what would be correct.
type Diag struct {
	Pos  Pos
	Code Code
	Msg  string
	Fix  string // the correct value or name, "" if it is unknown
}

// String returns FILE:LINE:COLUMN: what is wrong; did you mean FIX? [Code]
func (d Diag) String() string {
	var b strings.Builder
	if s := d.Pos.String(); s != "" {
		b.WriteString(s + ": ")
	}
	b.WriteString(d.Msg)
	if d.Fix != "" {
		fmt.Fprintf(&b, "; did you mean %s?", d.Fix)
	}
	fmt.Fprintf(&b, " [%s]", d.Code)
	return b.String()
}

// Diags collects input errors, so that a user sees all of them at once.
type Diags []Diag

// Addf records an input error.
func (ds *Diags) Addf(p Pos, c Code, format string, args ...any) {
	*ds = append(*ds, Diag{Pos: p, Code: c, Msg: fmt.Sprintf(format, args...)})
}

// Err returns nil if there are no errors, otherwise a copy of ds, sorted by position.
func (ds Diags) Err() error {
	if len(ds) == 0 {
		return nil
	}
	s := slices.Clone(ds)
	slices.SortStableFunc(s, func(a, b Diag) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), a.Pos.Line-b.Pos.Line, a.Pos.Column-b.Pos.Column)
	})
	return s
}

func (ds Diags) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// NearestNumbers returns the good numbers next to n, of some in ascending order: "2 or 4". It never returns n itself.
// It returns "" if no number is good.
func NearestNumbers(n int, numbers []int, isGood func(int) bool) string {
	at, isThere := slices.BinarySearch(numbers, n)
	below, above := slices.Clone(numbers[:at]), numbers[at:]
	if isThere {
		above = above[1:]
	}
	slices.Reverse(below)
	var words []string
	for _, side := range [][]int{below, above} {
		if i := slices.IndexFunc(side, isGood); i >= 0 {
			words = append(words, strconv.Itoa(side[i]))
		}
	}
	return strings.Join(words, " or ")
}

// Nearest returns the name in names with the smallest edit distance to s, "" if none is near enough to be meant.
func Nearest(s string, names []string) string {
	best, bestDist := "", max(1, len(s)/3)+1
	for _, n := range names {
		if d := editDistance(s, n); d < bestDist {
			best, bestDist = n, d
		}
	}
	return best
}

// editDistance returns the number of insertions, deletions, substitutions and swaps of neighbours.
func editDistance(a, b string) int {
	before, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		cur := make([]int, len(b)+1)
		cur[0] = i + 1
		for j := range len(b) {
			sub := prev[j]
			if a[i] != b[j] {
				sub++
			}
			cur[j+1] = min(sub, prev[j+1]+1, cur[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				cur[j+1] = min(cur[j+1], before[j-1]+1)
			}
		}
		before, prev = prev, cur
	}
	return prev[len(b)]
}
