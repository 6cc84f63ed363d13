package docs_test

import (
	"fmt"
	"go/ast"
	"maps"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
)

const opsHead = `# Ops

This is the op table of planc's IR. ` + "`go test ./golden/... -run TestOpsPage -update`" + ` generates this page from
` + "`ir/optable.go`" + `. Do not edit it.

A rule names dims by letters:

- a starred letter stands for any number of dims;
- ` + "`!d`" + ` cannot be sharded;
- ` + "`a'`" + ` is the same dim under another name;
- ` + "`c(s)`" + ` is the dims of s merged into one.

Sharding a dim of the result costs nothing. If a sharded dim is not in the result, the result is partial over the axes
that shard the dim, and the op's monoid reduces it ([the one rule](concepts/one-rule.md)). *Gradient*: a loss can be
differentiated through the op. *Kernel*: generated CPU programs can run the op.

| op | rule | computes | reduced by | gradient | kernel |
|---|---|---|---|---|---|
`

// opsPage returns the text of docs/ops.md.
func opsPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString(opsHead)
	var without []string
	emitted := emittedOps(t)
	for i, o := range ir.Ops() {
		gradient, kernel, joined := "", "yes", ""
		if o.Differentiable() {
			gradient = "yes"
		}
		if o == ir.OpSend || o == ir.OpReceive {
			kernel = "between blocks"
		} else if o.NoKernel() != "" || !emitted[i] && !o.Effect() {
			kernel = "no"
			without = append(without, "`"+o.String()+"`")
		}
		if reduces(o) {
			joined = o.Monoid(0).String()
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s | %s |\n", o, o.Rule(), o.Doc(), joined, gradient, kernel)
	}
	if len(without) > 0 {
		b.WriteString("\nThese ops have no kernel: " + strings.Join(without, ", ") +
			". The partition pass supports them, but no plan of the search needs them yet.\n")
	}
	return b.String()
}

// emittedOps reports for each op whether codegen's source names it.
func emittedOps(t *testing.T) []bool {
	names := map[string]bool{}
	var emitted []bool
	for _, s := range harness.Sources(t) {
		if s.Dir() == "codegen" && s.HasBudget() {
			maps.Copy(names, s.Identifiers())
		}
	}
	for _, s := range harness.Sources(t) {
		if s.Path != "ir/optable.go" {
			continue
		}
		for _, spec := range s.File.Decls[0].(*ast.GenDecl).Specs {
			emitted = append(emitted, names[spec.(*ast.ValueSpec).Names[0].Name])
		}
	}
	if len(emitted) < len(ir.Ops()) {
		t.Fatalf("ir/optable.go does not begin with its %d ops", len(ir.Ops()))
	}
	return emitted
}

// reduces reports whether an operand of the op's rule has a letter that its first result lacks.
func reduces(o ir.Op) bool {
	in, out, _ := strings.Cut(o.Rule(), "->")
	out, _, _ = strings.Cut(out, ",")
	for _, term := range strings.Fields(strings.ReplaceAll(in, ",", " ")) {
		letter := strings.TrimPrefix(term, "!")[:1]
		if strings.TrimSpace(out) != "" && !strings.Contains(out, letter) && !strings.HasPrefix(term, "!") {
			return true
		}
	}
	return false
}

func TestOpsPage(t *testing.T) {
	harness.HoldPage(t, "docs/ops.md", harness.DocPages(t)["docs/ops.md"], opsPage(t))
}
