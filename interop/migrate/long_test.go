package migrate

import (
	"os"
	"regexp"
	"testing"
)

// isLong reports whether tests try everything: PLANC_LAWS=long, as in .ci/run. A step of .ci/run with long laws must
// name the test.
func isLong(t *testing.T) bool {
	t.Helper()
	ci, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\tstep \w+ env PLANC_LAWS=long go test .*\./interop/migrate.* -run '([^']*)'`)
	step := line.FindSubmatch(ci)
	if step == nil || !regexp.MustCompile(string(step[1])).MatchString(t.Name()) {
		t.Errorf("no step of .ci/run with long laws runs %s", t.Name())
	}
	return os.Getenv("PLANC_LAWS") == "long"
}
