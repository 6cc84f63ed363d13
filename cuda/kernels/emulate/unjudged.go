package emulate

import (
	"bytes"
	"slices"
)

// Unjudged tells of what a failed test with a fault in its source printed whether it says nothing of the fault: nothing
// was compiled or run, or it did not end, as on a machine that is too busy.
func Unjudged(printed []byte) bool {
	return slices.ContainsFunc([]string{"compiling ", "mutation ", "no tests to run", "test timed out",
		ErrEndless.Error()}, func(s string) bool {
		return bytes.Contains(printed, []byte(s))
	})
}
