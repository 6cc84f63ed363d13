package costmodel

import (
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// tableCluster is an H100 node with a table.
func tableCluster(t *testing.T, table string) *Cluster {
	t.Helper()
	read := func(string) ([]byte, error) {
		return []byte("base: dgx-h100\nmeasured:\n  collectives: \"" + table + "\"\n"), nil
	}
	c, err := Resolve(Ref{Node: "here.yaml"}, nil, read)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A group in a node costs what was measured of its size, between measured sizes what lies between, and what nobody
// measured what the model predicts.
func TestCollectiveTable(t *testing.T) {
	plain := tableCluster(t, "")
	c := tableCluster(t, "all_reduce 2 65536 20; all_reduce 2 1048576 60; all_reduce 2 16777216 500; all_reduce 2 "+
		"268435456 8000; all_gather 4 65536 33; all_gather 4 131072 33")
	in := func(n int) Placement { return Placement{Local: n, Nodes: 1, Span: 1} }
	for _, x := range []struct {
		bytes Bytes
		us    float64
	}{{1, 20}, {65536, 21}, {1 << 20, 60}, {1 << 24, 500}, {1 << 28, 8000}, {1 << 29, 15990}} {
		got := float64(c.CollectiveTime(ir.OpAllReduce, in(2), x.bytes)) * 1e6
		// the least concave curve above points lies above those that are not on it
		if !(math.Abs(got-x.us) <= 0.13*x.us) {
			t.Errorf("all_reduce of 2, %v bytes: %g µs, want %g", float64(x.bytes), got, x.us)
		}
		if got < 0.99*x.us {
			t.Errorf("all_reduce of 2, %v bytes: %g µs, less than was measured", float64(x.bytes), got)
		}
	}
	if got := c.CollectiveTime(ir.OpAllGather, in(4), 1<<20); math.Abs(float64(got)*1e6-33) > 1e-9 {
		t.Errorf("of two measured sizes that took as long: %g", float64(got))
	}
	for _, p := range []Placement{in(4), in(8), {Local: 2, Nodes: 2, Span: 2}} {
		if p.Nodes > 1 {
			continue // dgx-h100 is one node here
		}
		if a, b := c.CollectiveTime(ir.OpAllReduce, p, 1<<24), plain.CollectiveTime(ir.OpAllReduce, p, 1<<24); a != b {
			t.Errorf("%+v was not measured and costs %g, want %g", p, float64(a), float64(b))
		}
	}
	if c.Deciding()["measured.collectives"] == "" {
		t.Error("a table decides plans, and no lock says so")
	}
}

// Another table is another price, and no collective is cheaper in two parts, whatever noise there is.
func TestCollectiveTableIsConcave(t *testing.T) {
	rows := []string{"all_reduce 8 4096 19", "all_reduce 8 65536 17", "all_reduce 8 262144 30",
		"all_reduce 8 1048576 29", "all_reduce 8 4194304 90", "all_reduce 8 16777216 150",
		"all_reduce 8 33554432 290", "all_reduce 8 67108864 400", "all_reduce 8 134217728 1000",
		"all_reduce 8 268435456 1400", "all_reduce 8 536870912 2600"}
	c := tableCluster(t, strings.Join(rows, ";"))
	slower := tableCluster(t, strings.ReplaceAll(strings.Join(rows, ";"), " 150", " 450"))
	p := Placement{Local: 8, Nodes: 1, Span: 1}
	time := func(c *Cluster, b float64) float64 { return float64(c.CollectiveTime(ir.OpAllReduce, p, Bytes(b))) }
	if a, b := time(c, 1<<24), time(slower, 1<<24); !(b > 2*a) {
		t.Errorf("%g and, three times as slow, %g", a, b)
	}
	for b := 1.0; b < 1e10; b *= 1.7 {
		if time(c, 2*b) > 2*time(c, b)*(1+1e-12) || time(c, 1.5*b) < time(c, b) {
			t.Errorf("%g bytes: %g, twice as many %g", b, time(c, b), time(c, 2*b))
		}
	}
}

// Errors in a table are reported at their position.
func TestBadTables(t *testing.T) {
	for table, want := range map[string]string{
		"all_reduce 8 16777216":        "a row must have four words",
		"reduce 8 16777216 150":        "unknown collective reduce; use all_reduce",
		"all_reduce 1 16777216 150":    "1 must be a number of ranks in a node",
		"all_reduce 8 16MiB 150":       "16MiB must be a whole number of bytes",
		"all_reduce 8 16777216 -1":     "-1 must be a number of microseconds",
		"all_reduce 8 1 1;all_reduce ": "a row must have four words",
		"all_reduce 8 1 1;all_reduce 8 1 2;all_reduce 4 1 2; all_reduce 4 2 2": "all_reduce of 8 ranks has only " +
			"one size, 1 bytes; it must have at least two sizes",
	} {
		_, err := ParseCluster("here.yaml", []byte("base: dgx-h100\nmeasured:\n  collectives: \""+table+"\"\n"))
		if err == nil || !strings.Contains(err.Error(), "here.yaml:3:16: measured.collectives: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", table, err)
		}
	}
}

// A table in a file next to the cluster file has the same effect as one inside it. Its errors are reported at their
// line in that file.
func TestCollectiveTableInFile(t *testing.T) {
	resolve := func(csv string) (*Cluster, error) {
		return Resolve(Ref{Node: "mine/here.yaml"}, nil, func(path string) ([]byte, error) {
			switch filepath.ToSlash(path) {
			case "mine/here.yaml":
				return []byte("base: dgx-h100\nmeasured: {collectives: data/nccl.csv}\n"), nil
			case "mine/data/nccl.csv":
				if csv != "" {
					return []byte(csv), nil
				}
			}
			return nil, fs.ErrNotExist
		})
	}
	c, err := resolve("collective,ranks,bytes,us\r\nall_reduce,2,65536,20\r\nall_reduce, 2, 16777216, 500\r\n")
	if err != nil {
		t.Fatal(err)
	}
	want := tableCluster(t, "all_reduce 2 65536 20; all_reduce 2 16777216 500")
	for _, b := range []Bytes{1, 1 << 20, 1 << 26} {
		p := Placement{Local: 2, Nodes: 1, Span: 1}
		if a, b := c.CollectiveTime(ir.OpAllReduce, p, b), want.CollectiveTime(ir.OpAllReduce, p, b); a != b {
			t.Errorf("%g, want %g", float64(a), float64(b))
		}
	}
	if !strings.Contains(c.Deciding()["measured.collectives"], "16777216") {
		t.Errorf("a lock holds %q, not what was measured", c.Deciding()["measured.collectives"])
	}
	for csv, want := range map[string]string{
		"": "mine/data/nccl.csv, which cannot be read",
		"collective,ranks\nall_reduce,2,64,x\n": "mine/data/nccl.csv:2:1: measured.collectives: " +
			"\"all_reduce,2,64,x\": x must be a number of microseconds",
		"all_reduce,2,64,1\ncollective,ranks\n": "mine/data/nccl.csv:2:1: ",
		"\nall_reduce,2,64,1\n": "mine/data/nccl.csv:2:1: measured.collectives: all_reduce of 2 " +
			"ranks has only one size",
	} {
		if _, err := resolve(csv); err == nil || !strings.Contains(filepath.ToSlash(err.Error()), want) {
			t.Errorf("%q: %v, want %s", csv, err, want)
		}
	}
}
