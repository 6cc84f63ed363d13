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

// A draw that fails is shrunk and printed as a file of golden/laws, which keeps it as a case: what the fault was is its
// comment; the model is one of lawModels; of the plan it has what one rank's has otherwise.

// archive is the case as such a file.
func (c *lawCase) archive() []byte {
	serial := ir.SerialPlan(c.model.Layers, lawBatch, ir.FullPrecision(c.elem))
	var plan strings.Builder
	was, is := strings.Fields(serial.Text()), strings.Fields(c.plan.Text())
	for i, key := range is {
		if key != was[i] {
			plan.WriteString(key + "\n")
		}
	}
	law := fmt.Sprintf("model=%s\nlayers=%d\ndropout=%g\noptimizer=%s\nelem=%s\n", c.model.name, c.model.Layers,
		c.model.DropResid, c.optimizer, c.elem)
	return txtar.Format(&txtar.Archive{Comment: fmt.Appendf(nil, "Found as %s of %s.\n", c.id, c.group),
		Files: []txtar.File{{Name: "law", Data: []byte(law)}, {Name: "plan", Data: []byte(plan.String())}}})
}

// parseLawCase reads what archive prints.
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
	c.plan = ir.SerialPlan(layers, lawBatch, ir.FullPrecision(elem))
	for _, line := range parts["plan"] {
		key, value, _ := strings.Cut(line, "=")
		if err := c.plan.SetKey(key, value); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestLawCases holds law 1 on what draws found once.
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

// What archive prints is the case again, whatever was drawn.
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
