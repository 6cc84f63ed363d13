package style_test

import (
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
