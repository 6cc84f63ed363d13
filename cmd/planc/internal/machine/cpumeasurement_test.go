package machine

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
)

// What was measured of a machine is a table whose figures end in one column, on a screen.
func TestMeasuredScreen(t *testing.T) {
	p := probeResult{ISA: "avx512", Single: slices.Clone(probedShapes), Double: 113e9, Half: 437e9, Call: 215e-9,
		Memory: 38 * costmodel.GBs, Ranks: 2, AllReduce: 33.7 * costmodel.GBs, Hop: 280e-9}
	for i := range p.Single {
		p.Single[i].FlopsPerS = 1.5e12
	}
	text := p.screen(Machine{CPU: "AMD EPYC", Cores: 2}, costmodel.Measured{Matrix: 1.1437, Overhead: 1.0689})
	end := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if w := layout.Width(line); w > layout.ScreenWidth {
			t.Errorf("%d columns: %s", w, line)
		}
		if strings.HasPrefix(line, "MATMUL") {
			end = layout.Width(line)
		}
		if (strings.HasPrefix(line, "f32 ") || strings.HasPrefix(line, "f64 ") || strings.HasPrefix(line, "bf16 ")) &&
			layout.Width(line) != end {
			t.Errorf("ends in column %d, not %d: %s", layout.Width(line), end, line)
		}
	}
	if !strings.Contains(text, "\nmemory      38.0 GB/s copy bandwidth, one core\nall-reduce  33.7 GB/s for 16 MiB on "+
		"2 ranks, 0.28 µs per hop\n") {
		t.Errorf("no rates in\n%s", text)
	}
	if !strings.Contains(text, "\nfactors     matrix 1.14, overhead 1.07, relative to the cost model\n") {
		t.Errorf("no factors in\n%s", text)
	}
}

// A panic of a rank that is measured ends at planc's boundary, as any other does.
func TestPanicOfARankIsTheCallers(t *testing.T) {
	if got := maxOverRanks(3, func(rank int) float64 { return float64(rank % 2) }); got != 1 {
		t.Errorf("the largest is %v", got)
	}
	defer func() {
		if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "a promise was broken\n") ||
			!strings.Contains(text, "cpumeasurement_test.go") {
			t.Errorf("panic %q", text)
		}
	}()
	maxOverRanks(2, func(rank int) float64 {
		if rank == 1 {
			panic("a promise was broken")
		}
		select {} // a rank that waits for the other
	})
}
