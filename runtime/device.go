package runtime

import "fmt"

// Device does a rank's work where that is not this CPU. Its calls are made by the rank's goroutine, in the order in which the CPU would
// do the work, and begin it without waiting for it; those that fail do so by [Check].
type Device interface {
	// Close gives back what the device has.
	Close()
}

// Check ends the command that the rank runs with an error, if it is one: for what generated code calls, which has no
// error results.
func Check(err error) { check(err) }

// MainLine is the name of the line between the ranks of one of the program's groups.
func MainLine(group int) string { return fmt.Sprintf("group %d", group) }
