package runtime

import (
	"bytes"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/report"
)

// shown is an exporter that counts what it is shown.
type shown struct {
	steps, evaluations int
	closed             bool
}

func (s *shown) Step(*report.StepLine) { s.steps++ }
func (s *shown) Valid(float64)         { s.evaluations++ }
func (s *shown) Addr() string          { return "127.0.0.1:1234" }
func (s *shown) Close()                { s.closed = true }

// serving makes a run serve its metrics.
func serving(addr string) Option { return func(o *driver.Options) { o.Metrics = addr } }

// A binary without an exporter refuses --metrics and says how to get one; with one, it is shown every step.
func TestMetricsAreServed(t *testing.T) {
	_, err := train(t, bigram[float32](2, 1), t.TempDir(), serving(":9400"))
	const want = "--metrics :9400: this binary has no HTTP server; compile it with planc compile --with-metrics, " +
		"or use planc run JOB -- --metrics :9400"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	s := &shown{}
	report.StartExporter = func(addr string, run report.RunInfo) (report.Exporter, error) {
		if addr != ":9400" || run.Name != "bigram" || run.Plan != "dp test" || run.Program != "0123456789abcdef" {
			t.Errorf("started at %s with %+v", addr, run)
		}
		return s, nil
	}
	defer func() { report.StartExporter = nil }()
	var out bytes.Buffer
	_, err = train(t, bigram[float32](2, 1), t.TempDir(), serving(":9400"), text(&out, false))
	must(t, err)
	if s.steps != 12 || s.evaluations == 0 || !s.closed {
		t.Errorf("it was shown %d steps and %d evaluations, closed: %v", s.steps, s.evaluations, s.closed)
	}
	if !strings.Contains(out.String(), "metrics: http://127.0.0.1:1234/metrics\n") {
		t.Errorf("%s", out.String())
	}
}
