package search

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"
)

// TestMain sets the garbage collector as planc does when it searches.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// isBrute reports whether tests take minutes: PLANC_BRUTE is set, as in the step brute of .ci/run.
func isBrute() bool { return os.Getenv("PLANC_BRUTE") != "" }

// draws returns how often a test draws: n times if PLANC_BRUTE is set, and otherwise half of it.
func draws(n int) int {
	if isBrute() {
		return n
	}
	return n / 2
}

// onlyBrute skips a test that takes many seconds, unless PLANC_BRUTE is set. The step brute must name the test.
func onlyBrute(t *testing.T) {
	t.Helper()
	ci, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^step brute env PLANC_BRUTE=\d+ go test -run '(.*)' \./passes/search `)
	step := line.FindSubmatch(ci)
	if step == nil || !regexp.MustCompile(string(step[1])).MatchString(t.Name()) {
		t.Errorf("the step brute of .ci/run does not run %s", t.Name())
	}
	if !isBrute() {
		t.Skip("takes many seconds: PLANC_BRUTE=1 runs it")
	}
}
