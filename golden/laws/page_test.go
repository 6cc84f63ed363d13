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
			{`The\sshort\srun\shas\s\d+`, short}, {`The\slong\srun\shas\s\d+`, long}, {`\d+\sprograms\strain\sthem`,
				len(law2Cases())}},
		"README.md": {{`in\s\d+\sfamilies`, families}, {`builds\sand\strains\s\d+`, short},
			{`the\s+long\s+run\s\d+`, long}},
	} {
		page := pages[name]
		for _, c := range counts {
			if !regexp.MustCompile(c.pattern).MatchString(page) {
				t.Errorf("%s: no text matches %s", name, c.pattern)
			}
			page = regexp.MustCompile(c.pattern).ReplaceAllStringFunc(page, func(s string) string {
				return regexp.MustCompile(`\d+`).ReplaceAllString(s, fmt.Sprint(c.want))
			})
		}
		harness.HoldPage(t, name, pages[name], page)
	}
	if want := fmt.Sprintf("**Bound: %.0e, relative, in f64.**", lawBound); !strings.Contains(pages["docs/laws.md"],
		want) {
		t.Errorf("docs/laws.md must contain %q", want)
	}
}
