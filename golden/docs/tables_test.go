package docs_test

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/cuda/kernels"
	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/passes/validate"
	"github.com/planc-dev/planc/runtime/launch"
)

// Pages contain tables that are generated from the program's own:
//
//	<!-- table NAME ARGUMENT -->
//	...
//	<!-- end -->
//
// The function for NAME in tables generates the lines between the marks from the argument.
var tables = map[string]func(arg string) []string{
	"fields":         fieldTable,
	"cluster-fields": clusterFieldTable,
	"plan-keys":      planKeyTable,
	"models":         modelTables,
	"families":       familyTable,
	"family-keys":    familyKeyTable,
	"clusters":       clusterTable,
	"sources":        sourceLists,
	"weights":        weightTable,
	"codes":          codeTable,
	"rows":           rowTable,
	"kernels":        kernelTable,
	"later":          unsupportedTable,
	"engines":        engineTable,
	"launchers":      launcherTable,
	"known":          knownTable,
}

var tableMark = regexp.MustCompile(`(?s)(<!-- table (\S+) ?(\S*) -->\n).*?(<!-- end -->)`)

// Generated tables on pages are current; -update writes them again.
func TestPagesTables(t *testing.T) {
	used := map[string]bool{}
	for name, page := range harness.DocPages(t) {
		want := tableMark.ReplaceAllStringFunc(page, func(s string) string {
			m := tableMark.FindStringSubmatch(s)
			rows, ok := tables[m[2]]
			if !ok {
				t.Errorf("%s: unknown table %s", name, m[2])
				return s
			}
			used[m[2]], used[m[2]+" "+m[3]] = true, true
			return m[1] + strings.Join(rows(m[3]), "\n") + "\n" + m[4]
		})
		harness.HoldPage(t, name, page, want)
	}
	for _, f := range spec.Fields() {
		if group, _ := cutLast(f.Path); !used["fields "+group] && group != "plan" {
			t.Errorf("no page has the table of %s, the fields of %q", f.Path, group)
		}
	}
	for name := range tables {
		if !used[name] {
			t.Errorf("no page has the table %s", name)
		}
	}
}

// launcherTable returns the variables which show that a process is one of several, and which planc does not follow by
// itself.
func launcherTable(string) []string {
	out := table("variable", "refused if", "set by", "documented in")
	for _, m := range launch.Markers() {
		out = append(out, harness.TableRow("`"+m[0]+"`", m[1], m[2], m[3]))
	}
	return out
}

// kernelTable returns the table of CUDA kernels and their CPU loops, without the variants of
// [kernels.Extras].
func kernelTable(string) []string {
	out := table("kernel", "file", "equivalent CPU loop", "types")
	for _, k := range kernels.Table {
		isVariant := func(extras string) bool { return strings.HasSuffix(k.Name, extras) }
		if slices.ContainsFunc(kernels.Extras[1:], isVariant) {
			continue
		}
		out = append(out, harness.TableRow(code(k.Name), code(k.File), code(k.Loop), strings.Join(k.Types, ", ")))
	}
	return out
}

// engineTable returns the table of rules of engines that run only some of the legal plans.
func engineTable(string) []string {
	out := table("engine", "key", "what it runs", "source")
	for _, r := range engines.PlanRules {
		out = append(out, harness.TableRow(code(r.Engine), code(r.Key), strings.TrimPrefix(r.When,
			"engine "+r.Engine+" "),
			r.Source))
	}
	return out
}

// rowTable returns the table of columns of measured runs.
func rowTable(string) []string {
	out := table("column", "needed", "meaning")
	for _, c := range validate.Columns {
		out = append(out, harness.TableRow(code(c.Name), c.Need, c.Doc))
	}
	return out
}

// table returns the head of a table with these columns.
func table(columns ...string) []string {
	return []string{harness.TableRow(columns...), strings.Repeat("|---", len(columns)) + "|"}
}

// cutLast splits a dotted path before its last word.
func cutLast(path string) (group, key string) {
	i := strings.LastIndex(path, ".")
	return path[:max(i, 0)], path[i+1:]
}

// code returns a text in backquotes.
func code(s string) string { return "`" + s + "`" }

// fieldTable returns the table of the fields of a mapping of the job file.
func fieldTable(mapping string) []string {
	out := table("key", "takes", "if absent", "", "meaning", "example")
	for _, f := range spec.Fields() {
		group, key := cutLast(f.Path)
		if group != mapping {
			continue
		}
		class, example := f.Class, ""
		if f.Group && f.Default == "" {
			class = ""
		}
		if f.Example != "" {
			example = code(key + ": " + f.Example)
		}
		out = append(out, harness.TableRow(code(key), f.Type, f.Default, mark[class],
			f.Doc+supportNote(f.Supported), example))
	}
	return out
}

var mark = map[string]string{"d": "[d]", "r": "[r]", "c": "", "": ""}

// supportNote returns the note on the values that planc supports; "" if it supports all.
func supportNote(now []string) string {
	switch {
	case len(now) == 0:
		return ""
	case now[0] == spec.NoneSupported:
		return ". *Not supported yet.*"
	}
	return ". *Today: " + strings.Join(now, ", ") + ".*"
}

// unsupportedTable returns the table of job keys for which some or all values are not supported yet.
func unsupportedTable(string) []string {
	out := table("key", "supported today")
	for _, f := range spec.Fields() {
		switch {
		case len(f.Supported) == 0:
		case f.Supported[0] == spec.NoneSupported:
			out = append(out, harness.TableRow(code(f.Path), "no value"))
		default:
			out = append(out, harness.TableRow(code(f.Path), strings.Join(f.Supported, ", ")))
		}
	}
	return out
}

// clusterFieldTable returns the table of the fields of a type of the cluster file.
func clusterFieldTable(name string) []string {
	out := table("key", "takes", "meaning")
	t, ok := clusterTypes[name]
	if !ok {
		panic("cluster files have no type " + name)
	}
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		if key := tag.Get("yaml"); key != "-" {
			out = append(out, harness.TableRow(code(key), clusterType(t.Field(i)), tag.Get("doc")))
		}
	}
	return out
}

var clusterTypes = map[string]reflect.Type{
	"cluster": reflect.TypeFor[costmodel.Cluster](), "gpu": reflect.TypeFor[costmodel.GPU](),
	"node": reflect.TypeFor[costmodel.Node](),
	"link": reflect.TypeFor[costmodel.Link](), "host": reflect.TypeFor[costmodel.Host](),
	"nvme":    reflect.TypeFor[costmodel.NVMe](),
	"network": reflect.TypeFor[costmodel.Tier](), "measured": reflect.TypeFor[costmodel.Measured](),
}

// clusterType returns the description of the values of a field of the cluster file.
func clusterType(f reflect.StructField) string {
	bounds := spec.Bounds(f.Tag)
	switch {
	case f.Type == reflect.TypeFor[costmodel.BytesPerSecond]():
		return "bandwidth"
	case f.Tag.Get("enum") != "":
		return "one of " + strings.ReplaceAll(f.Tag.Get("enum"), ",", ", ")
	case f.Tag.Get("keys") != "":
		return "numbers" + bounds + " by " + strings.ReplaceAll(f.Tag.Get("keys"), ",", ", ")
	}
	names := map[reflect.Kind]string{reflect.Struct: "mapping", reflect.Slice: "list of mappings",
		reflect.Map:     "texts by dotted name",
		reflect.Float64: "number", reflect.Int: "integer", reflect.Bool: "bool", reflect.String: "text"}
	return names[f.Type.Kind()] + bounds
}

// planKeyTable returns the table of the keys of a plan.
func planKeyTable(string) []string {
	out := table("key", "values", "meaning", "legal if")
	fields := map[string]spec.Field{}
	for _, f := range spec.Fields() {
		fields[f.Path] = f
	}
	for _, key := range ir.PlanKeys() {
		f, ok := fields["plan."+key]
		if !ok {
			f = fields["train."+key]
			f.Doc += "; not a pin: set `train." + key + "` in the job"
		}
		values := cmp.Or(strings.Join(f.Enum, ", "), strings.TrimSuffix(f.Type, ", or a list"))
		out = append(out, harness.TableRow(code(key), values, f.Doc+supportNote(f.Supported), legalIf(key)))
	}
	return out
}

// legalIf returns the rules of a key.
func legalIf(key string) string {
	var all []string
	for _, r := range search.Rules() {
		if r.Key == key && !strings.HasPrefix(r.Message, "today") {
			all = append(all, r.Message)
		}
	}
	return strings.Join(all, "; ")
}

// aliases returns the other names of a row of the cluster catalogue.
func aliases(row string) string {
	var names []string
	for _, alias := range slices.Sorted(maps.Keys(costmodel.ClusterAliases())) {
		if costmodel.ClusterAliases()[alias] == row && alias != row {
			names = append(names, code(alias))
		}
	}
	return strings.Join(names, ", ")
}

// clusterTable returns the table of the cluster catalogue.
func clusterTable(string) []string {
	out := table("name", "also", "devices per node", "GiB", "memory GB/s", "bf16 TFLOP/s", "link GB/s",
		"network a node")
	for _, name := range costmodel.ClusterNames() {
		c, err := costmodel.Resolve(costmodel.Ref{Node: name}, nil, nil)
		if err != nil {
			panic(err)
		}
		peak, network := "none", "none"
		if x, ok := c.GPU.PeakTFLOPS["bf16"]; ok {
			peak = fmt.Sprint(x)
		}
		if len(c.Network) > 0 {
			network = fmt.Sprintf("%d × %g Gb/s", c.Network[0].NICs, float64(c.Network[0].Bandwidth)*8/1e9)
		}
		out = append(out, harness.TableRow(code(name), aliases(name), fmt.Sprintf("%d %s", c.Node.Devices, c.GPU.Name),
			fmt.Sprint(c.GPU.MemoryGiB),
			fmt.Sprintf("%.4g", float64(c.GPU.MemoryBandwidth)/1e9), peak, fmt.Sprintf("%.4g",
				float64(c.Node.Link.Bandwidth)/1e9), network))
	}
	return out
}

// sourceLists returns lists of the sources of each cluster's figures.
func sourceLists(string) (out []string) {
	for _, name := range costmodel.ClusterNames() {
		c, err := costmodel.Resolve(costmodel.Ref{Node: name}, nil, nil)
		if err != nil {
			panic(err)
		}
		by := map[string][]string{}
		for _, figure := range slices.Sorted(maps.Keys(c.Source)) {
			by[c.Source[figure]] = append(by[c.Source[figure]], code(figure))
		}
		out = append(out, "", "### "+name, "")
		for _, source := range slices.SortedFunc(maps.Keys(by), func(a, b string) int {
			return cmp.Compare(by[a][0], by[b][0])
		}) {
			out = append(out, "- "+strings.Join(by[source], ", ")+": "+source)
		}
	}
	return out[1:]
}

// docs/README.md links to all pages.
func TestPagesIndex(t *testing.T) {
	pages := harness.DocPages(t)
	linked := map[string]bool{"docs/README.md": true}
	for _, m := range link.FindAllStringSubmatch(pages["docs/README.md"], -1) {
		linked[filepath.Join("docs", m[1])] = true
	}
	for name := range pages {
		if strings.HasPrefix(name, "docs/") && !linked[name] {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}
