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

// CollectiveTable holds measured times of collectives between devices of a node, in the form of a cluster file: rows of
// the collective, the number of ranks, the bytes as [Route.Time] counts them, and microseconds. A semicolon or the end
// of a line ends a row:
//
//	all_reduce 2 65536 21.4; all_reduce 2 16777216 152
//
// A group with this number of ranks in one node is then priced only from its rows, which must contain at least two
// sizes. Groups without rows are priced by the model. A name that ends in .csv is a file of such rows with commas, next
// to the cluster file; [Resolve] reads it.
type CollectiveTable string

// file reports whether the table is in another file.
func (t CollectiveTable) file() bool {
	return strings.HasSuffix(strings.ToLower(string(t)), ".csv") && !strings.ContainsAny(string(t), ";\n")
}

// tabled is the collective and group size of a row.
type tabled struct {
	op    ir.Op
	ranks int
}

// timed is the size and time of a row.
type timed struct{ bytes, seconds float64 }

// tabledOps maps the names of collectives in tables to ops.
var tabledOps = map[string]ir.Op{"all_reduce": ir.OpAllReduce, "all_gather": ir.OpAllGather,
	"reduce_scatter": ir.OpReduceScatter, "all_to_all": ir.OpAllToAll}

// BadTable is reported for a table of measurements that cannot be read.
//
// Example:
//
//	measured: {collectives: all_reduce 2 64KiB}
const BadTable ir.Code = "BadTable"

// UnmarshalNode reads a table, and rejects one that does not define routes.
func (t *CollectiveTable) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	if n.Kind != strict.String {
		c.Addf(n.Pos, strict.WrongType,
			"%s is %v; it must be rows such as all_reduce 8 16777216 152: collective, ranks, bytes, µs", path, n.Kind)
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

// tableHead is the first word of a header row.
const tableHead = "collective"

// routes returns the routes that the table defines. An error refers to a line.
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
			return nil, first[what], fmt.Errorf("%s of %d ranks has only one size, %.0f bytes; it must have at "+
				"least two sizes, from which other sizes are interpolated", what.op, what.ranks, p[0].bytes)
		}
		out[what] = tableRoute(p)
	}
	return out, 0, nil
}

// several reports whether more than one size was measured.
func several(points []timed) bool {
	return slices.ContainsFunc(points, func(p timed) bool { return p.bytes != points[0].bytes })
}

// readTable reads a cluster's table from a file of its own, whose name is relative to the cluster file, and computes
// its routes. Errors are reported at that file, or at the cluster's name if the file cannot be read.
func (x *resolution) readTable(read func(string) ([]byte, error)) error {
	c, cluster := x.found, x.ref.Node
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
		diags.Addf(x.at("node"), NoFile, "measured.collectives of %s is %s, which cannot be read: %v", cluster, name,
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

// tableRow parses one row.
func tableRow(words []string) (what tabled, at timed, err error) {
	if len(words) != 4 {
		return what, at, fmt.Errorf("a row must have four words: collective, ranks, bytes, µs, such as " +
			"all_reduce 8 16777216 152")
	}
	op, ok := tabledOps[words[0]]
	if !ok {
		return what, at, fmt.Errorf("unknown collective %s; use all_reduce, all_gather, reduce_scatter or "+
			"all_to_all", words[0])
	}
	ranks, err := strconv.Atoi(words[1])
	if err != nil || ranks < 2 || ranks > 4096 {
		return what, at, fmt.Errorf("%s must be a number of ranks in a node, 2 to 4096", words[1])
	}
	bytes, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil || bytes < 1 {
		return what, at, fmt.Errorf("%s must be a whole number of bytes", words[2])
	}
	us, err := strconv.ParseFloat(words[3], 64)
	if err != nil || !(us > 0 && us < 1e9) {
		return what, at, fmt.Errorf("%s must be a number of microseconds", words[3])
	}
	return tabled{op, ranks}, timed{float64(bytes), us * 1e-6}, nil
}

// tableRoute returns the smallest concave, non-decreasing curve above the measured points, as lines of which
// [Route.Time] takes the minimum. Splitting a collective in two then never makes it cheaper. Sizes above the largest
// measured one are extrapolated from the last two points.
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

// slope returns the seconds per byte from one point to the next, which may have the same size.
func slope(a, b timed) float64 {
	if a.bytes == b.bytes {
		return 0
	}
	return (b.seconds - a.seconds) / (b.bytes - a.bytes)
}

// thinned returns a hull without the inner point that changes it least.
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
