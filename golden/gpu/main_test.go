// Package gpu_test tests binaries for GPUs, whole, on emulated GPUs.
package gpu_test

import (
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
