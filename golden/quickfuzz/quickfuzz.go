// Package quickfuzz makes the fuzz targets of a test binary that imports it spend their time on new inputs. The go
// command minimizes each input that covers new code for up to a minute by default; for the texts of a few KiB that
// planc's targets begin with, they then made 5 to 44 executions a minute. With at most 100 executions for each they
// make thousands a second.
//
// `go test -fuzzminimizetime` still sets another limit. It changes nothing of tests that do not fuzz.
package quickfuzz

import (
	"flag"
	"fmt"
	"testing"
)

// Minimize is the limit, as the flag takes it.
const Minimize = "100x"

func init() {
	testing.Init() // the flags of tests are there afterwards
	if err := flag.Set("test.fuzzminimizetime", Minimize); err != nil {
		panic(fmt.Sprintf("quickfuzz: %v", err))
	}
}
