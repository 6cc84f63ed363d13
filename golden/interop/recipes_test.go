package interop_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/migrate"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
)

// recipesPage shows what planc check says about published recipes.
const recipesPage = "docs/recipes.md"

// recipe is a published configuration of another trainer, as facts: its source, and the settings that matter to a plan.
type recipe struct {
	format, name string
	source       string      // repository@commit path
	run          []string    // flags of planc check: what the file does not say
	measured     string      // what the source says of a run: "step=1.2s memory=30.1GiB"; "" if nothing
	settings     [][2]string // keys and values; options of a command line have no dashes
}

// readRecipes parses testdata/recipes.txt.
func readRecipes(t *testing.T) (recipes []recipe) {
	text, err := os.ReadFile("testdata/recipes.txt")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		if strings.HasPrefix(block, "#") {
			continue
		}
		lines := strings.Split(strings.TrimSpace(block), "\n")
		var r recipe
		r.format, r.name, _ = strings.Cut(lines[0], ": ")
		for _, line := range lines[1:] {
			key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch key {
			case "source":
				r.source = rest
			case "run":
				r.run = strings.Fields(rest)
			case "measured":
				r.measured = rest
			case "set":
				for _, word := range strings.Fields(rest) {
					k, v, _ := strings.Cut(strings.ReplaceAll(word, `\s`, " "), "=")
					r.settings = append(r.settings, [2]string{k, v})
				}
			default:
				t.Fatalf("recipes.txt: %s: unknown line %q", r.name, line)
			}
		}
		recipes = append(recipes, r)
	}
	return recipes
}

// file renders the settings as a file of the recipe's format.
func (r *recipe) file(t *testing.T) interop.File {
	switch r.format {
	case "megatron":
		var b strings.Builder
		b.WriteString("torchrun pretrain_gpt.py")
		for _, s := range r.settings {
			b.WriteString(" \\\n    --" + s[0])
			if s[1] != "" {
				b.WriteString(" '" + s[1] + "'")
			}
		}
		return interop.File{Name: "run.sh", Data: []byte(b.String() + "\n")}
	case "torchtitan":
		return interop.File{Name: "recipe.toml", Data: r.toml()}
	}
	data, err := json.MarshalIndent(r.tree(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	name := "recipe.yaml"
	if r.format == "deepspeed" {
		name = "ds_config.json"
	}
	return interop.File{Name: name, Data: data}
}

// toml renders dotted keys as tables of TOML.
func (r *recipe) toml() []byte {
	var b strings.Builder
	section := ""
	for _, s := range r.settings {
		i := strings.LastIndex(s[0], ".")
		if s[0][:i] != section {
			section = s[0][:i]
			fmt.Fprintf(&b, "[%s]\n", section)
		}
		fmt.Fprintf(&b, "%s = %s\n", s[0][i+1:], s[1])
	}
	return []byte(b.String())
}

// tree nests dotted keys, whose values are JSON.
func (r *recipe) tree(t *testing.T) map[string]any {
	root := map[string]any{}
	for _, s := range r.settings {
		at := root
		parts := strings.Split(s[0], ".")
		for _, p := range parts[:len(parts)-1] {
			inner, ok := at[p].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[p] = inner
			}
			at = inner
		}
		var v any
		if err := json.Unmarshal([]byte(s[1]), &v); err != nil {
			t.Fatalf("%s: %s: %v", r.name, s[0], err)
		}
		at[parts[len(parts)-1]] = v
	}
	return root
}

// runFields maps flags to the fields of a job.
var runFields = map[string]string{"--cluster": "cluster.node", "--nodes": "cluster.nodes",
	"--devices": "cluster.devices", "--model": "model", "--global-batch": "train.global_batch",
	"--seq-len": "train.seq_len"}

// check returns what planc check says about a recipe. An error is what it refuses.
func (r *recipe) check(t *testing.T) (*migrate.Report, error) {
	var overrides []spec.Override
	for i := 0; i < len(r.run); i += 2 {
		overrides = append(overrides, spec.Override{Key: runFields[r.run[i]], Value: r.run[i+1], Shown: r.run[i]})
	}
	source, err := migrate.ReadFor([]interop.File{r.file(t)}, r.format, interop.Options{}, os.ReadFile, overrides)
	if err != nil {
		return nil, err
	}
	q, err := source.Question(os.ReadFile, overrides...)
	if err != nil {
		return nil, err
	}
	return migrate.NewReport(source, q)
}

// row returns the recipe's row of the page.
func (r *recipe) row(t *testing.T) string {
	report, err := r.check(t)
	var diags ir.Diags
	switch {
	case errors.As(err, &diags):
		return harness.TableRow(r.name, r.gpus(), "refused", "", "", diags[0].Msg, r.measured)
	case err != nil:
		t.Fatalf("%s: %v", r.name, err)
	}
	gpus := fmt.Sprintf("%d %s", report.Cluster.Devices, report.Cluster.GPU)
	cells := []string{r.name, gpus, "", "", "", "", r.measured}
	best := "none fits"
	if report.Best != nil {
		best = planner.Differences(report.Best.Plan.Plan, report.From())
		if best == "" {
			best = "the same"
		}
	}
	switch {
	case report.Yours == nil:
		cells[2], cells[5] = "illegal", report.Rules[0].Message
	default:
		cells[3] = fmt.Sprintf("%.3g s, %.1f GiB", float64(report.Yours.Predict.StepS),
			float64(report.Yours.Predict.MemoryBytes.Total)/(1<<30))
		cells[2] = "fits"
		if !report.Yours.Fits {
			cells[2] = fmt.Sprintf("no: %.1f GiB over", float64(report.Over.OverBytes)/(1<<30))
			if report.Yours.Predict.MemoryBytes.Total <= int64(report.Question.Hardware.GPU.Memory()) {
				cells[2] += ", with headroom"
			}
		}
	}
	if report.SlowerBy != nil {
		cells[4] = quantity.Percent(*report.SlowerBy)
	}
	cells[5] = cmp.Or(cells[5], best)
	return harness.TableRow(cells...)
}

// gpus returns the recipe's cluster.
func (r *recipe) gpus() string {
	i := slices.Index(r.run, "--cluster")
	j := slices.Index(r.run, "--nodes")
	return r.run[j+1] + " × " + r.run[i+1]
}

// recipesHeader is the first line of the page's tables.
const recipesHeader = "| recipe | GPUs | fits | step, memory | slower by | best plan | measured |"

// recipesTable matches the tables that the page has from this test.
var recipesTable = regexp.MustCompile(`(?s)<!-- recipes (\w+) -->\n.*?<!-- end -->`)

// docs/recipes.md shows what planc check says about published recipes. The short test asks about every tenth.
func TestLawRecipes(t *testing.T) {
	recipes := readRecipes(t)
	if len(recipes) < 60 {
		t.Errorf("%d recipes, want at least 60", len(recipes))
	}
	page := harness.DocPages(t)[recipesPage]
	all := harness.Long() || harness.Updating()
	rows := map[string][]string{}
	for i, r := range recipes {
		if !all && i%10 != 0 {
			continue
		}
		row := r.row(t)
		rows[r.format] = append(rows[r.format], row)
		if !harness.Updating() && !strings.Contains(page, row) {
			t.Errorf("%s has no such row; PLANC_UPDATE=1 go test ./golden/interop -run Recipes writes it:\n%s",
				recipesPage, row)
		}
	}
	if harness.Updating() {
		old := page
		page = recipesTable.ReplaceAllStringFunc(page, func(table string) string {
			format := recipesTable.FindStringSubmatch(table)[1]
			return fmt.Sprintf("<!-- recipes %s -->\n%s\n|---|---|---|---|---|---|---|\n%s\n<!-- end -->", format,
				recipesHeader, strings.Join(rows[format], "\n"))
		})
		harness.HoldPage(t, recipesPage, old, page)
	}
}
