package golden_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// What pages say of the laws is what the laws do.
func TestLawsPage(t *testing.T) {
	page := docPages(t)["docs/laws.md"]
	flat := regexp.MustCompile(`\s+`).ReplaceAllString(page, " ")
	for _, want := range []string{
		fmt.Sprintf("short run is %d programs", len(lawCases(false))),
		fmt.Sprintf("long run is %d programs", len(lawCases(true))),
		fmt.Sprintf("%d programs train them", len(law2Cases())),
		fmt.Sprintf("Bound: %s, relative, in f64", scientific(lawBound)),
		"within 3 % + 64 MiB",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("docs/laws.md does not say %q", want)
		}
	}
	readme := docPages(t)["README.md"]
	for _, cases := range [][]lawCase{lawCases(false), lawCases(true)} {
		if want := fmt.Sprintf("%d programs", len(cases)); !strings.Contains(readme, want) {
			t.Errorf("README.md does not say %q of law 1", want)
		}
	}
}

// scientific is 1e-10.
func scientific(x float64) string { return strings.Replace(fmt.Sprintf("%.0e", x), "e-0", "e-", 1) }
