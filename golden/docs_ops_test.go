package golden_test

import (
	"fmt"
	"go/ast"
	"maps"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
)

const opsHead = `# Ops

The op table of planc's IR, made from ` + "`ir/optable.go`" + ` by ` + "`go test ./golden -run TestOpsPage -update`" + `. Do not edit.

A rule names dims by letters. A starred letter is any number of dims; ` + "`!d`" + ` cannot be split; ` + "`a'`" + ` is the same dim under
another name; ` + "`c(s)`" + ` is the dims of s merged into one. A dim that the result has is split for free. A dim that it
lacks leaves a partial value over the axes that split it, to be joined by the op's monoid
([the one rule](concepts/one-rule.md)). Gradient: yes where a loss can be differentiated through the op. Kernel: yes
where generated CPU programs can run it.

| op | rule | computes | joined by | gradient | kernel |
|---|---|---|---|---|---|
`

// opsPage is docs/ops.md.
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
	b.WriteString("\nWithout a kernel: " + strings.Join(without, ", ") +
		". Partition knows them; no plan that the planner offers needs them yet.\n")
	return b.String()
}

// emittedOps tells of each op whether codegen's source names it.
func emittedOps(t *testing.T) []bool {
	names := map[string]bool{}
	var emitted []bool
	for _, s := range sources(t) {
		if s.dir() == "codegen" && s.held() {
			maps.Copy(names, identifiers(s))
		}
	}
	for _, s := range sources(t) {
		if s.path != "ir/optable.go" {
			continue
		}
		for _, spec := range s.file.Decls[0].(*ast.GenDecl).Specs {
			emitted = append(emitted, names[spec.(*ast.ValueSpec).Names[0].Name])
		}
	}
	if len(emitted) < len(ir.Ops()) {
		t.Fatalf("ir/optable.go does not begin with its %d ops", len(ir.Ops()))
	}
	return emitted
}

// reduces tells whether an operand of the op's rule has a letter that its first result lacks.
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
	holdPage(t, "docs/ops.md", docPages(t)["docs/ops.md"], opsPage(t))
}
