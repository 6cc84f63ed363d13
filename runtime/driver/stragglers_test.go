package driver

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/report"
)

// A rank that is slow for a window of steps is reported once, and its end too. A single slow step, or a window that is
// short, is not reported.
func TestStragglersAreReported(t *testing.T) {
	dir := t.TempDir()
	metrics, err := report.OpenMetrics(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := &recorder{job: &job{outputs: outputs{metrics: metrics, report: report.NewPrinter(&out, false, nil)}}}
	r.parts = &partTimes{stages: [][]int{{0, 1, 2}, {3}}, excess: make([]float64, 4)}
	r.parts.times.Busy, r.parts.times.Wait = make([]float64, 4), make([]float64, 4)
	step := 0
	steps := func(n int, seconds float64, busy ...float64) {
		for range n {
			step++
			copy(r.parts.times.Busy, busy)
			r.parts.compare()
			r.watchStragglers(step, seconds)
		}
	}
	steps(100, 0.01, 0.008, 0.02, 0.008, 0.05) // 1 s: the window is open
	steps(4, 10, 0.008, 0.008, 0.008, 0.05)
	steps(19, 1, 0.5, 0.52, 0.5, 0.5)
	steps(1, 1, 0.5, 5, 0.5, 0.5)
	steps(40, 1, 0.5, 0.51, 0.65, 5)
	steps(20, 1, 0.5, 0.51, 0.5, 5)
	metrics.Close()
	log, err := os.ReadFile(filepath.Join(dir, report.MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(regexp.MustCompile(`"step":.*`).FindAllString(string(log), -1), "\n")
	want := `"step":101,"event":"straggler","detail":"rank 1: 150 % slower than the median of its stage, steps 1 to 101"}
"step":121,"event":"straggler_end","detail":"rank 1, steps 102 to 121"}
"step":141,"event":"straggler","detail":"rank 2: 29 % slower than the median of its stage, steps 122 to 141"}
"step":181,"event":"straggler_end","detail":"rank 2, steps 162 to 181"}`
	if got != want {
		t.Errorf("events:\n%s\nwant:\n%s", got, want)
	}
	for _, want := range []string{"warning: rank 1: 150 % slower than the median of its stage, steps 1 to 101; " +
		"all ranks wait for it in every step. --trace-steps shows where\n", "warning: rank 2: 29 % slower"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q does not contain %q", out.String(), want)
		}
	}
}
