package screen

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/cmd/planc/internal/lock"
)

// However long names and values are and however many there are, the rows fit a screen.
func TestChangeRowsFit(t *testing.T) {
	var changes []lock.Change
	for range 2 * maxRows {
		changes = append(changes, lock.Change{Section: "model", Key: "rope_scaling.long",
			From: strings.Repeat("1.5, ", 40), To: strings.Repeat("2.5, ", 40)})
	}
	text := changeRows(changes, lock.Change.Path)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != maxRows+1 || lines[maxRows] != "    and 16 more" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
	for _, line := range lines {
		if layout.Width(line) > layout.ScreenWidth {
			t.Errorf("%d columns: %s", layout.Width(line), line)
		}
	}
}
