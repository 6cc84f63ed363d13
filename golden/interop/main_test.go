// Package interop_test holds planc's import and export of other trainers' files against the parsers of these trainers.
// scripts/oracle DIR installs the parsers; PLANC_ORACLE=DIR/bin/python makes the tests ask them. Without it they skip.
package interop_test

import (
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
