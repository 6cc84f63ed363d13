package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/costmodel"
)

// What was measured of a machine is a table whose figures end in one column, on a screen.
func TestMeasuredScreen(t *testing.T) {
	p := probed{ISA: "avx512", Single: slices.Clone(shapesProbed), Double: 113e9, Call: 215e-9, Memory: 38 * costmodel.GBs, Ranks: 2, AllReduce: 33.7 * costmodel.GBs, Hop: 280e-9}
	for i := range p.Single {
		p.Single[i].FlopsPerS = 1.5e12
	}
	text := p.screen(machine{CPU: "AMD EPYC", Cores: 2}, costmodel.Measured{Matrix: 1.1437, Overhead: 1.0689})
	end := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if w := width(line); w > screenWidth {
			t.Errorf("%d columns: %s", w, line)
		}
		if strings.HasPrefix(line, "PRODUCT") {
			end = width(line)
		}
		if (strings.HasPrefix(line, "f32 ") || strings.HasPrefix(line, "f64 ")) && width(line) != end {
			t.Errorf("ends in column %d, not %d: %s", width(line), end, line)
		}
	}
	if !strings.Contains(text, "\nfactors     matrix 1.14, overhead 1.07 of what the cost model says of such a\n            core\n") {
		t.Errorf("no factors in\n%s", text)
	}
}
