package passes

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/planc-dev/planc/ir"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "record the outputs of testdata's cases")

// A case is a file of testdata: what to see, a model, how its regions are laid out on a mesh, and what passes make of
// it. File "layouts" has a line for the mesh, one for each region, and perhaps "zero=1", "recompute full" and the like.
// The files that follow are outputs, each named after what it shows: partition, fused, classes, update, collectives.
type testCase struct {
	name string
	*txtar.Archive
}

func cases(t *testing.T) []testCase {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata: %d cases, %v", len(files), err)
	}
	var cs []testCase
	for _, f := range files {
		a, err := txtar.ParseFile(f)
		if err != nil {
			t.Fatal(err)
		}
		cs = append(cs, testCase{f, a})
	}
	return cs
}

func (c testCase) file(name string) string {
	for _, f := range c.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// program reads the case's input.
func (c testCase) program(t *testing.T) *ir.Program {
	t.Helper()
	m, err := ir.ParseModel(c.file("model"))
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return laidOut(t, m, c.file("layouts"))
}

// laidOut is the program of a model before its first pass, on a mesh and layouts given as text.
func laidOut(t *testing.T, m *ir.Model, text string) *ir.Program {
	t.Helper()
	plan := ir.SerialPlan(1, 1, ir.FullPrecision(ir.F64))
	p := &ir.Program{Name: m.Name, Plan: plan, Model: m.Clone(), Layouts: map[ir.Region]ir.Layout{},
		Recipe: ir.Recipe{Optimizer: "adamw"}}
	if err := p.Model.Check(); err != nil {
		t.Fatalf("%s: %v", m.Name, err)
	}
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		var err error
		switch word {
		case "mesh":
			p.Mesh, err = ir.ParseMesh(rest)
		case "region":
			name, dims, _ := strings.Cut(rest, " ")
			p.Layouts[ir.Region(name)] = layoutOf(dims)
		case "zero=1":
			p.Plan.Zero = 1
		case "zero_group=2":
			p.Plan.ZeroGroup = 2
		case "recompute":
			p.Plan.Recompute, p.Plan.RecomputeLayers = rest, 1
		case "weights": // side by side
			p.Recipe.Sides = true
		case "recompute_split":
			p.Plan.RecomputeSplit = true
		default:
			err = fmt.Errorf("layouts: %q", line)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func layoutOf(dims string) ir.Layout {
	l := ir.Layout{}
	for _, d := range strings.Fields(dims) {
		dim, axes, _ := strings.Cut(d, "@")
		for _, a := range strings.Split(axes, "@") {
			l[ir.Dim(dim)] = append(l[ir.Dim(dim)], ir.Axis(a))
		}
	}
	return l
}

// run does the passes up to the named one, checking after each.
func run(t *testing.T, p *ir.Program, until string) {
	t.Helper()
	var done []string
	for _, pass := range All {
		if err := pass.Run(p); err != nil {
			t.Fatalf("%s: pass %s: %v", p.Name, pass.Name, err)
		}
		done = append(done, pass.Name)
		if err := p.Check(done); err != nil {
			t.Fatalf("%s: pass %s: %v\n%v", p.Name, pass.Name, err, p.Model)
		}
		if pass.Name == until {
			return
		}
	}
}

// outputs are what a case may show.
var outputs = map[string]func(*testing.T, *ir.Program) string{
	"partition": func(t *testing.T, p *ir.Program) string {
		run(t, p, "partition")
		_, text, _ := strings.Cut(p.Model.String(), "\n")
		return text
	},
	"collectives": func(t *testing.T, p *ir.Program) string {
		run(t, p, "partition")
		var b strings.Builder
		for _, s := range p.Model.Variants() {
			for _, f := range s.Funcs() {
				fmt.Fprintf(&b, "%s: %s\n", f.Name, collectives(p, f))
			}
		}
		return b.String()
	},
	"kept": func(t *testing.T, p *ir.Program) string {
		run(t, p, "partition")
		var b strings.Builder
		for _, s := range p.Model.Variants() {
			fmt.Fprintf(&b, "%s:%s\n", s.Name, keptValues(s))
		}
		return b.String()
	},
	"again": func(t *testing.T, p *ir.Program) string {
		run(t, p, "partition")
		var b strings.Builder
		for _, n := range p.Model.Segments[0].Remat.Backward.Nodes {
			if len(n.Outs) > 0 && !n.Op.View() && p.Model.Segments[0].Forward.Value(n.Outs[0].Name) != nil {
				fmt.Fprintln(&b, n)
			}
		}
		return b.String()
	},
	"classes": func(t *testing.T, p *ir.Program) string {
		run(t, p, "zero")
		return lines(p, "class ", "slot ")
	},
	"fused": func(t *testing.T, p *ir.Program) string {
		run(t, p, "fuse")
		_, text, _ := strings.Cut(p.Model.String(), "\n")
		return text
	},
	"update": func(t *testing.T, p *ir.Program) string {
		run(t, p, "bucket")
		return p.Stages[0].Update.String()
	},
}

// keptValues are the forward values that a segment's backward function takes, with their types.
func keptValues(s *ir.Segment) string {
	var b strings.Builder
	for _, v := range s.Backward.Inputs {
		if v.Kind != ir.Weight && s.Forward.Value(v.Name) != nil {
			fmt.Fprintf(&b, " %s %v,", v.Name, v.Type)
		}
	}
	return strings.TrimSuffix(b.String(), ",")
}

// lines are those of the program's text that begin with one of the prefixes.
func lines(p *ir.Program, prefixes ...string) string {
	var b strings.Builder
	for line := range strings.Lines(p.String()) {
		if slices.ContainsFunc(prefixes, func(pre string) bool { return strings.HasPrefix(line, pre) }) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// collectives counts a function's collectives by op and axes: "all_reduce@tp x2 of 256 bytes".
func collectives(p *ir.Program, f *ir.Func) string {
	count := map[string]int{}
	for _, n := range f.Nodes {
		if c, ok := n.Collective(p.Mesh); ok {
			axes := make([]string, len(c.Axes))
			for i, a := range c.Axes {
				axes[i] = string(a)
			}
			count[fmt.Sprintf("%s@%s of %d bytes", c.Op, strings.Join(axes, "@"), c.Bytes)]++
		}
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d %s", count[k], k))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// TestCases holds the partitioner to the cases of testdata, among them the six of design.md that prove the op table.
func TestCases(t *testing.T) {
	for _, c := range cases(t) {
		t.Run(strings.TrimSuffix(filepath.Base(c.name), ".txtar"), func(t *testing.T) {
			for i, f := range c.Files {
				show := outputs[f.Name]
				if show == nil {
					continue
				}
				got := show(t, c.program(t))
				if *update {
					c.Files[i].Data = []byte(got)
				} else if diff := cmp.Diff(string(f.Data), got); diff != "" {
					t.Errorf("%s of %s (-want +got):\n%s", f.Name, c.name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(c.name, txtar.Format(c.Archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
