// Package docs_test compares the pages with what planc does: commands and their output, tables, keys, messages.
package docs_test

import (
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
