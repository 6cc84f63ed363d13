package laws_test

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tellingTests are the tests that would have caught each bug of facts.md 4.3, by row; those with lawBugs are groups
// of TestLawTellingBugs.
var tellingTests = map[int]string{
	2: "TestLawParallelEqualsSerial", 9: "TestLawResumeOnAnotherPlan TestCheckpointsMoveBetweenPlans",
	10: "TestCrashAtEveryOperation TestFailedSaveCleansUp",
	13: "TestAbortFreesTheOthers TestTimeoutNamesTheAbsent", 16: "TestEveryPlanReadsEveryLabelOnce TestResumeIsExact",
	20: "TestEpochs TestEpochsWithAnotherBatch", 21: "TestCopies", 22: "TestNonfinite TestLawLossScale",
}

// tellingLater are rows about features that planc does not support yet.
var tellingLater = map[int]string{
	11: "checkpoints that are written while training goes on: steps wait for them",
	14: "a restart after a node is lost: every process ends, and says which was",
	19: "prediction heads",
}

// Each row has a test, and each named test exists.
func TestTellingBugsHaveTests(t *testing.T) {
	out, err := exec.Command("git", "grep", "-hoE", "^func Test[A-Za-z0-9]+", "--", ":/*_test.go").Output()
	if err != nil {
		t.Skipf("no list of tests: %v", err)
	}
	tests := regexp.MustCompile(`Test\w+`).FindAllString(string(out), -1)
	for row := 1; row <= 22; row++ {
		found := tellingLater[row] != ""
		for _, b := range lawBugs {
			found = found || b.row == row
		}
		for name := range strings.FieldsSeq(tellingTests[row]) {
			found = true
			if !slices.Contains(tests, name) {
				t.Errorf("row %d: no test %s", row, name)
			}
		}
		if !found {
			t.Errorf("row %d has no test", row)
		}
	}
}
