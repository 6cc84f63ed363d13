package harness

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var updateFlag = flag.Bool("update", false, "write recorded texts and pages again")

// Updating reports whether recorded texts are to be written again: -update, or PLANC_UPDATE=1, which the command line's
// scripts know too.
func Updating() bool { return *updateFlag || os.Getenv("PLANC_UPDATE") == "1" }

// HoldPage fails a test if a page is not as it should be, or, if [Updating], writes it.
func HoldPage(t *testing.T, name, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	if Updating() {
		if err := os.WriteFile(filepath.Join(Root, name), []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	is, should := strings.Split(got, "\n"), strings.Split(want, "\n")
	at := 0
	for at < min(len(is), len(should))-1 && is[at] == should[at] {
		at++
	}
	t.Errorf("%s:%d is out of date; go test ./golden/... -update writes it\n  page %s\n  true %s", name, at+1,
		is[at], should[at])
}

// Prose returns a page with what it quotes left blank: code blocks, and code in backquotes.
func Prose(page string) string {
	page = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllStringFunc(page, Blank)
	page = regexp.MustCompile(`(?m)^(    |\t).*$`).ReplaceAllStringFunc(page, Blank)
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllStringFunc(page, Blank)
}

// Blank returns as many empty lines as a text has, so that the positions after it stay the same.
func Blank(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) }

// TableRow returns a row of a Markdown table. A bar inside a cell is escaped.
func TableRow(cells ...string) string {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// Long reports whether the laws are to try everything: PLANC_LAWS=long, which .ci/run sets.
func Long() bool { return os.Getenv("PLANC_LAWS") == "long" }

// OnlyLong skips a test that takes many seconds, unless [Long]. A step of .ci/run with long laws must name the test.
func OnlyLong(t *testing.T) {
	t.Helper()
	ci, err := os.ReadFile(filepath.Join(Root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile(`(?m)^\tstep \w+ env PLANC_LAWS=long go test .*-run '([^']*)'`).FindAllSubmatch(ci, -1)
	if !slices.ContainsFunc(steps, func(step [][]byte) bool {
		return regexp.MustCompile(string(step[1])).MatchString(t.Name())
	}) {
		t.Errorf("no step of .ci/run with long laws runs %s", t.Name())
	}
	if !Long() {
		t.Skip("takes many seconds: PLANC_LAWS=long runs it")
	}
}
