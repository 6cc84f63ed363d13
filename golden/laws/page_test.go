package laws_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// The counts on the pages about the laws are those of the tests; -update writes new ones.
func TestLawsPage(t *testing.T) {
	short, long := len(lawCases(false)), len(lawCases(true))
	pages := harness.DocPages(t)
	familyNames := map[string]bool{}
	for _, m := range slices.Concat(lawModels(), expertModels()) {
		familyNames[m.Family] = true
	}
	families := len(familyNames)
	for name, counts := range map[string][]struct {
		pattern string // around its first number
		want    int
	}{
		"docs/laws.md": {{`reads\s\d+\sfixtures`, len(law2Plans)}, {`for\s\d+\sfamilies`, families},
			{`The\sshort\srun\shas\s\d+`, short}, {`The\slong\srun\s\(.PLANC_LAWS=long.\)\shas\s\d[\d,]*`, long}, {`\d+\sprograms\strain\sthem`,
				len(law2Cases())}},
		"README.md": {{`for\s\d+\smodel\sfamilies`, families}, {`builds\sand\strains\s\d+`, short},
			{`\(.PLANC_LAWS=long.\)\strains\s\d[\d,]*`, long}},
	} {
		page := pages[name]
		for _, c := range counts {
			if !regexp.MustCompile(c.pattern).MatchString(page) {
				t.Errorf("%s: no text matches %s", name, c.pattern)
			}
			page = regexp.MustCompile(c.pattern).ReplaceAllStringFunc(page, func(s string) string {
				return regexp.MustCompile(`\d[\d,]*`).ReplaceAllString(s, grouped(c.want))
			})
		}
		harness.HoldPage(t, name, pages[name], page)
	}
	if want := fmt.Sprintf("**Bound: %.0e, relative, in f64.**", lawBound); !strings.Contains(pages["docs/laws.md"],
		want) {
		t.Errorf("docs/laws.md must contain %q", want)
	}
}

// grouped writes a number below a million with a comma between thousands, as the pages do.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
