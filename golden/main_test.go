// Package golden_test compares what planc makes of jobs with what was recorded. Its folders: style (house rules), docs
// (pages), laws (the three laws) and gpu (binaries for GPUs).
package golden_test

import (
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
