package passes

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
