// Package laws_test tests the three laws: parallel training equals serial training, planc equals PyTorch, and
// predictions equal measurements.
package laws_test

import (
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
