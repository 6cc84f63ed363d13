package search

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain sets the garbage collector as planc does when it searches.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// draws returns how often a test draws: n times if PLANC_BRUTE is set, as in .ci/run, and otherwise half of it.
func draws(n int) int {
	if os.Getenv("PLANC_BRUTE") != "" {
		return n
	}
	return n / 2
}
