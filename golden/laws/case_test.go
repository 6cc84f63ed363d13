package laws_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/planc-dev/planc/ir"
)

// A failing draw is shrunk and printed as a file. Saved in golden/laws, it becomes a test case. The comment describes
// the fault; the model is one of lawModels; plan keys that the file omits have the values of the one-rank plan.

// archive returns the case in this format.
func (c *lawCase) archive() []byte {
	serial := ir.SerialPlan(c.model.Layers, lawBatch, ir.FullPrecision(c.elem))
	var plan strings.Builder
	was, is := strings.Fields(serial.Text()), strings.Fields(c.plan.Text())
	for i, key := range is {
		if key != was[i] {
			plan.WriteString(key + "\n")
		}
	}
	law := fmt.Sprintf("model=%s\nlayers=%d\ndropout=%g\noptimizer=%s\nelem=%s\ndocuments=%v\n", c.model.name,
		c.model.Layers, c.model.DropResid, c.optimizer, c.elem, c.model.documents)
	return txtar.Format(&txtar.Archive{Comment: fmt.Appendf(nil, "Found as %s of %s.\n", c.id, c.group),
		Files: []txtar.File{{Name: "law", Data: []byte(law)}, {Name: "plan", Data: []byte(plan.String())}}})
}

// parseLawCase parses the output of archive.
func parseLawCase(t *testing.T, data []byte) lawCase {
	t.Helper()
	parts := map[string][]string{}
	for _, f := range txtar.Parse(data).Files {
		parts[f.Name] = strings.Fields(string(f.Data))
	}
	law := map[string]string{}
	for _, line := range parts["law"] {
		key, value, _ := strings.Cut(line, "=")
		law[key] = value
	}
	elem, known := ir.ParseElem(law["elem"])
	layers, err := strconv.Atoi(law["layers"])
	drop, dropErr := strconv.ParseFloat(law["dropout"], 64)
	if !known || err != nil || dropErr != nil || law["optimizer"] == "" {
		t.Fatalf("not what a law's case says: %v", law)
	}
	c := lawCase{model: modelNamed(t, law["model"]), optimizer: law["optimizer"], elem: elem}
	c.model.Layers, c.model.DropEmbd, c.model.DropResid, c.model.DropAttn = layers, drop, drop, drop
	c.model.documents = law["documents"] == "true" // cases from before there were masks lack the key
	c.plan = ir.SerialPlan(layers, lawBatch, ir.FullPrecision(elem))
	for _, line := range parts["plan"] {
		key, value, _ := strings.Cut(line, "=")
		if err := c.plan.SetKey(key, value); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// Law 1 holds for cases that draws found earlier.
func TestLawCases(t *testing.T) {
	files, err := filepath.Glob("*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var cases []lawCase
	for i, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := parseLawCase(t, txtar.Format(a))
		c.group = strings.TrimSuffix(filepath.Base(file), ".txtar")
		ref := c
		ref.plan = ir.SerialPlan(c.model.Layers, lawBatch, c.plan.Precision)
		c.id, ref.id = fmt.Sprintf("case%d", i), fmt.Sprintf("ref%d", i)
		cases = append(append(append(cases, ref), yardsticks(ref)...), c)
	}
	runLawCases(t, "cases", cases)
}

// Parsing the output of archive gives the same case, for every draw.
func TestLawCasesAreReadBack(t *testing.T) {
	for n := range uint64(80) {
		c := drawCase(n)
		got := parseLawCase(t, c.archive())
		if got.plan != c.plan || got.optimizer != c.optimizer || got.elem != c.elem ||
			fmt.Sprintf("%+v", got.model) != fmt.Sprintf("%+v", c.model) {
			t.Fatalf("draw %d is read back as\n%s\nwas\n%s", n, got.archive(), c.archive())
		}
	}
}
