package docs_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

const cliPage = "docs/cli.md"

// cliJob compiles to a small binary.
const cliJob = `
model: {model_type: gpt2, vocab_size: 256, n_positions: 8, n_embd: 8, n_layer: 1, n_head: 1}
data: {train: [goroot:src/testdata/Isaac.Newton-Opticks.txt]}
train: {seq_len: 8, global_batch: 1, steps: 1}
cluster: 1xcpu
`

var (
	heading  = regexp.MustCompile(`(?m)^## (.*)$`)
	flagRow  = regexp.MustCompile("(?m)^\\| `--([a-z-]+)(?: ([^`]+))?`")
	flagHelp = regexp.MustCompile(`(?m)^ +(?:-[a-zA-Z], +)?--([a-z-]+)(?: (\S+))?`)
	command  = regexp.MustCompile(`(?m)^  ([a-z]+) +\S`)
	notYet   = regexp.MustCompile("`(planc [a-z]+|planc [a-z]+ --[a-z-]+(?: cuda)?|\\./train --[a-z-]+(?: " +
		"[a-z0-9]+)?)`")
)

// flagsOf returns the flags in a text, each with its argument: "--set KEY=VALUE".
func flagsOf(pattern *regexp.Regexp, text string) map[string]bool {
	flags := map[string]bool{}
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		flags[strings.TrimSpace("--"+m[1]+" "+strings.ReplaceAll(m[2], `\|`, "|"))] = true
	}
	return flags
}

// sections returns the page's texts by heading.
func sections(page string) map[string]string {
	out := map[string]string{}
	at := heading.FindAllStringSubmatchIndex(page, -1)
	for i, m := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		out[page[m[2]:m[3]]] = page[m[1]:end]
	}
	return out
}

// docs/cli.md describes planc as its help does (-update copies the help), and lists exactly the flags of a training
// binary. planc refuses what the page calls not supported yet.
func TestCommandLineIsDocumented(t *testing.T) {
	bin := harness.Planc(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "planc.yaml"), []byte(cliJob), 0o666); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, bin, "cli")
	call := func(name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, w.env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(out string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
	}
	must(call(bin, "compile", "-o", "train"))

	text := harness.DocPages(t)[cliPage]
	harness.HoldPage(t, cliPage, text, withCommands(t, text, must(call(bin, "help", "markdown"))))
	page := sections(harness.DocPages(t)[cliPage])
	help := must(call(bin, "--help"))
	_, list, _ := strings.Cut(help, "Available Commands:")
	list, _, _ = strings.Cut(list, "Flags:")
	for _, m := range command.FindAllStringSubmatch(list, -1) {
		if _, ok := page["planc "+m[1]]; !ok && m[1] != "help" {
			t.Errorf("%s has no section on planc %s", cliPage, m[1])
		}
		flags := flagsOf(flagHelp, must(call(bin, m[1], "--help")))
		if len(flags) < 3 {
			t.Errorf("the help of planc %s lists %d flags: did its layout change?", m[1], len(flags))
		}
		if flags["--set KEY=VALUE"] {
			continue
		}
		for f := range flagsOf(flagRow, page["planc "+m[1]]) {
			if !flags[f] {
				t.Errorf("%s lists %s for planc %s, which does not have it", cliPage, f, m[1])
			}
		}
	}
	for _, name := range []string{"data tokenize", "data inspect", "data split", "checkpoint ls", "checkpoint show",
		"checkpoint verify", "checkpoint diff", "checkpoint prune"} {
		compareFlags(t, "planc "+name, flagsOf(flagRow, page["planc "+name]+
			strings.ReplaceAll(page["planc"], "| `--version`", "")),
			flagsOf(flagHelp, must(call(bin, append(strings.Fields(name), "--help")...))))
	}
	compareFlags(t, "a training binary", flagsOf(flagRow, page["The binary"]),
		flagsOf(flagHelp, must(call("./train", "--help"))))
	checkUnsupported(t, page["Not supported yet"], bin, call)
}

// withCommands returns the page with planc's help in place of the part from the heading "planc" to "The binary".
func withCommands(t *testing.T, page, commands string) string {
	t.Helper()
	before, rest, ok := strings.Cut(page, "\n## planc\n")
	_, after, also := strings.Cut(rest, "\n## The binary\n")
	if !ok || !also {
		t.Fatalf("%s must have the headings planc and The binary", cliPage)
	}
	return before + "\n" + commands + "\n## The binary\n" + after
}

// compareFlags compares the flags on the page with the existing ones.
func compareFlags(t *testing.T, command string, listed, existing map[string]bool) {
	t.Helper()
	if len(existing) < 3 {
		t.Errorf("the help of %s lists %d flags: did its layout change?", command, len(existing))
	}
	for _, f := range slices.Sorted(maps.Keys(existing)) {
		if !listed[f] {
			t.Errorf("%s has no line for %s of %s", cliPage, f, command)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(listed)) {
		if !existing[f] {
			t.Errorf("%s lists %s for %s, which does not have it", cliPage, f, command)
		}
	}
}

// checkUnsupported checks that planc refuses what the page calls not supported yet.
func checkUnsupported(t *testing.T, text, bin string, call func(string, ...string) (string, error)) {
	t.Helper()
	named := notYet.FindAllStringSubmatch(text, -1)
	if len(named) < 4 {
		t.Errorf("%s names %d things that are not supported yet", cliPage, len(named))
	}
	for _, m := range named {
		args := strings.Fields(m[1])
		name := args[0]
		if name == "planc" {
			name = bin
		}
		out, err := call(name, args[1:]...)
		says := strings.Join(strings.Fields(out), " ")
		if err == nil || !strings.Contains(says, "ot supported yet") {
			t.Errorf("%s says that %s is not supported yet, but it prints %v\n%s", cliPage, m[1], err, out)
		}
	}
}
