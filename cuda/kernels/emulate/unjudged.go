package emulate

import (
	"bytes"
	"slices"
)

// Unjudged reports whether the output of a failed mutation test says nothing about the fault, because
// nothing was compiled or run, or the kernel did not end, as on a machine that is too busy.
func Unjudged(printed []byte) bool {
	return slices.ContainsFunc([]string{"compiling ", "mutation ", "no tests to run", "test timed out",
		ErrEndless.Error()}, func(s string) bool {
		return bytes.Contains(printed, []byte(s))
	})
}
