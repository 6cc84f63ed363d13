package costmodel

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// CollectiveTable is how long collectives took between devices of a node, as a cluster file has it: rows of the
// collective, how many ranks, bytes as [Route.Time] counts them, and microseconds, with a semicolon or a line's end
// behind each:
//
//	all_reduce 2 65536 21.4; all_reduce 2 16777216 152
//
// A group of so many ranks in one node is then priced by its rows alone, of which two sizes are wanted; what has none,
// as the model predicts. A name that ends in .csv is a file of such rows with commas, beside the cluster file;
// [Resolve] reads it.
type CollectiveTable string

// file tells whether the table is in another file.
func (t CollectiveTable) file() bool {
	return strings.HasSuffix(strings.ToLower(string(t)), ".csv") && !strings.ContainsAny(string(t), ";\n")
}

// tabled is what a row is of.
type tabled struct {
	op    ir.Op
	ranks int
}

// timed is a row's size and time.
type timed struct{ bytes, seconds float64 }

// tabledOps are the collectives that tables have, by their names there.
var tabledOps = map[string]ir.Op{"all_reduce": ir.OpAllReduce, "all_gather": ir.OpAllGather,
	"reduce_scatter": ir.OpReduceScatter, "all_to_all": ir.OpAllToAll}

// BadTable is reported for a table of measurements that cannot be read.
//
// Example:
//
//	measured: {collectives: all_reduce 2 64KiB}
const BadTable ir.Code = "BadTable"

// UnmarshalNode reads a table, and refuses what routes cannot be made of.
func (t *CollectiveTable) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	if n.Kind != strict.String {
		c.Addf(n.Pos, strict.WrongType,
			"%s is %v; rows such as all_reduce 8 16777216 152 are wanted: collective, ranks, bytes, µs", path, n.Kind)
		return
	}
	*t = CollectiveTable(n.Text)
	if t.file() {
		return
	}
	if _, _, err := t.routes(); err != nil {
		c.Addf(n.Pos, BadTable, "%s: %v", path, err)
	}
}

// tableHead begins the first row of a file that says what its columns are.
const tableHead = "collective"

// routes are the ways that the table says; an error is of a line.
func (t CollectiveTable) routes() (out map[tabled]Route, line int, err error) {
	points, first, order := map[tabled][]timed{}, map[tabled]int{}, []tabled{}
	for i, rows := range strings.Split(string(t), "\n") {
		for row := range strings.SplitSeq(rows, ";") {
			words := strings.FieldsFunc(row, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
			if len(words) == 0 || i == 0 && words[0] == tableHead {
				continue
			}
			what, at, err := tableRow(words)
			if err != nil {
				return nil, i + 1, fmt.Errorf("%q: %w", strings.TrimSpace(row), err)
			}
			if points[what] == nil {
				first[what], order = i+1, append(order, what)
			}
			points[what] = append(points[what], at)
		}
	}
	out = map[tabled]Route{}
	for _, what := range order {
		p := points[what]
		if !several(p) {
			return nil, first[what], fmt.Errorf("%s of %d ranks has one size, %.0f bytes; two are wanted, from which "+
				"others follow", what.op, what.ranks, p[0].bytes)
		}
		out[what] = tableRoute(p)
	}
	return out, 0, nil
}

// several tells whether more than one size was measured.
func several(points []timed) bool {
	return slices.ContainsFunc(points, func(p timed) bool { return p.bytes != points[0].bytes })
}

// readTable reads a cluster's table where that is a file of its own, whose name is as seen from the cluster's, and
// makes its routes. What is wrong is told in that file or, where there is none, at the cluster's name.
func (c *Cluster) readTable(cluster string, at ir.Pos, read func(string) ([]byte, error)) error {
	t := &c.Measured.Collectives
	if !t.file() {
		return nil
	}
	var diags ir.Diags
	name := filepath.FromSlash(string(*t))
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(cluster), name)
	}
	data, err := read(name)
	if err != nil {
		diags.Addf(at, NoFile, "measured.collectives of %s is %s, which cannot be read: %v", cluster, name,
			ir.FileReason(err))
		return diags
	}
	*t = CollectiveTable(data) // so that a lock holds what was measured
	var line int
	c.table, line, err = t.routes()
	if err != nil {
		diags.Addf(ir.Pos{File: name, Line: line, Column: 1}, BadTable, "measured.collectives: %v", err)
		return diags
	}
	return nil
}

// tableRow reads one.
func tableRow(words []string) (what tabled, at timed, err error) {
	if len(words) != 4 {
		return what, at, fmt.Errorf("a row has four words: collective, ranks, bytes, µs; all_reduce 8 16777216 152")
	}
	op, ok := tabledOps[words[0]]
	if !ok {
		return what, at, fmt.Errorf("there is no collective %s, but all_reduce, all_gather, reduce_scatter and "+
			"all_to_all", words[0])
	}
	ranks, err := strconv.Atoi(words[1])
	if err != nil || ranks < 2 || ranks > 4096 {
		return what, at, fmt.Errorf("%s are no ranks of a node; 2 to 4096", words[1])
	}
	bytes, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil || bytes < 1 {
		return what, at, fmt.Errorf("%s are no bytes, a whole number", words[2])
	}
	us, err := strconv.ParseFloat(words[3], 64)
	if err != nil || !(us > 0 && us < 1e9) {
		return what, at, fmt.Errorf("%s are no microseconds", words[3])
	}
	return tabled{op, ranks}, timed{float64(bytes), us * 1e-6}, nil
}

// tableRoute is the least concave curve above what was measured that never falls: as lines, of which [Route.Time] takes
// the least. A collective is then no cheaper in two parts, and larger ones than were measured go on as the last two
// did.
func tableRoute(points []timed) (r Route) {
	slices.SortFunc(points, func(a, b timed) int {
		if a.bytes != b.bytes {
			return compareFloats(a.bytes, b.bytes)
		}
		return compareFloats(a.seconds, b.seconds)
	})
	hull := []timed{{0, points[0].seconds}}
	for _, p := range points {
		p.seconds = max(p.seconds, hull[len(hull)-1].seconds)
		for len(hull) > 1 && slope(hull[len(hull)-2], hull[len(hull)-1]) <= slope(hull[len(hull)-2], p) {
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, p)
	}
	for len(hull)-1 > len(r.curves) {
		hull = thinned(hull)
	}
	for i := range len(hull) - 1 {
		beta := slope(hull[i], hull[i+1])
		r.add(hull[i].seconds-beta*hull[i].bytes, beta)
	}
	return r
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// slope is the seconds of a byte from one point to the next, which may have as many.
func slope(a, b timed) float64 {
	if a.bytes == b.bytes {
		return 0
	}
	return (b.seconds - a.seconds) / (b.bytes - a.bytes)
}

// thinned is a hull without the point inside that it needs least.
func thinned(hull []timed) []timed {
	least, at := 0.0, 0
	for i := 1; i < len(hull)-1; i++ {
		a, b := hull[i-1], hull[i]
		low := a.seconds + slope(a, hull[i+1])*(b.bytes-a.bytes)
		if lost := 1 - low/b.seconds; at == 0 || lost < least {
			least, at = lost, i
		}
	}
	return slices.Delete(hull, at, at+1)
}
