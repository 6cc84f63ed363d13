package exporter

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/timeline"
)

// scraped starts an exporter, shows it two steps and an evaluation, and returns what a scrape returns.
func scraped(t *testing.T) string {
	t.Helper()
	e, err := report.StartExporter("127.0.0.1:0", report.RunInfo{Name: "a\"b\\c\nd", Plan: "dp 2 · tp 2",
		Program: "0123"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for i := range 2 {
		e.Step(&report.StepLine{
			Step: &report.Step{Step: i + 1, Loss: 2.5, LR: 1e-7, GradNorm: math.Inf(1), Tokens: 1 << 40,
				Seconds: 0.25, LossScale: 65536},
			TokensPerSecond: 4096, MFU: math.NaN(), Memory: 1 << 30, HasAux: true,
			Times: &report.Times{Parts: [timeline.Parts]float64{timeline.Compute: 0.125, timeline.TPComm: 0.125},
				Busy: []float64{0.125, 0.0625}, Wait: []float64{0, 0.0625}, Skew: 0.5},
			Telemetry: []report.Telemetry{{Utilization: 0.5, Memory: 1e9, Watts: math.NaN(), MHz: 1980}},
		})
	}
	e.Valid(2.75)
	answer, err := http.Get("http://" + e.Addr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.Header.Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("Content-Type %q", got)
	}
	return string(body)
}

// wantSamples are some of the samples, with sums over both steps.
var wantSamples = []string{
	`planc_info{name="a\"b\\c\nd",plan="dp 2 · tp 2",program="0123"} 1`,
	"planc_step 2", "planc_loss 2.5", "planc_learning_rate 1e-07", "planc_grad_norm +Inf", "planc_mfu_ratio NaN",
	"planc_tokens_total 1.099511627776e+12", "planc_step_seconds_sum 0.5", "planc_step_seconds_count 2",
	`planc_step_part_seconds_total{part="compute"} 0.25`, `planc_step_part_seconds_total{part="dp_comm"} 0`,
	`planc_rank_busy_seconds_total{rank="1"} 0.125`, `planc_rank_wait_seconds_total{rank="1"} 0.125`,
	"planc_rank_skew_ratio 0.5", "planc_valid_loss 2.75", `planc_gpu_clock_hertz{gpu="0"} 1.98e+09`,
	`planc_gpu_power_watts{gpu="0"} NaN`, "planc_memory_bytes 1.073741824e+09",
}

// A scrape has every metric once, after its help and type, in the grammar of the text format.
func TestScrape(t *testing.T) {
	body := scraped(t)
	for _, want := range wantSamples {
		if !strings.Contains(body, "\n"+want+"\n") {
			t.Errorf("no line %s in\n%s", want, body)
		}
	}
	sample := regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="([^"\\\n]|\\["\\n])*"(,[a-z]+="([^"\\\n]|\\["\\n])*")*\})? ` +
		`([-+0-9.e]+|NaN|\+Inf|-Inf)$`)
	family, seen := "", map[string]bool{}
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		var name, rest string
		switch {
		case strings.HasPrefix(line, "# HELP "):
			name, rest, _ = strings.Cut(line[len("# HELP "):], " ")
			if seen[name] || rest == "" {
				t.Errorf("%s a second time, or without help", name)
			}
			family, seen[name] = name, true
		case strings.HasPrefix(line, "# TYPE "):
			if !regexp.MustCompile(`^# TYPE ` + family + ` (gauge|counter|summary)$`).MatchString(line) {
				t.Errorf("%s after the help of %s", line, family)
			}
		default:
			m := sample.FindStringSubmatch(line)
			if m == nil || strings.TrimSuffix(strings.TrimSuffix(m[1], "_sum"), "_count") != family {
				t.Errorf("not a sample of %s: %s", family, line)
			}
		}
	}
}

// The Prometheus client's own parser reads a scrape. PLANC_PROMETHEUS is a Python that has prometheus_client.
func TestPrometheusReadsAScrape(t *testing.T) {
	python := os.Getenv("PLANC_PROMETHEUS")
	if python == "" {
		t.Skip("PLANC_PROMETHEUS is not set")
	}
	cmd := exec.Command(python, "-c", `
import sys
from prometheus_client.parser import text_string_to_metric_families
for f in text_string_to_metric_families(sys.stdin.read()):
    for s in f.samples:
        print(f.type, s.name, sorted(s.labels.items()), repr(s.value), bool(f.documentation))`)
	body := scraped(t)
	cmd.Stdin = strings.NewReader(body)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := string(out)
	for _, want := range []string{
		`gauge planc_info [('name', 'a"b\\c\nd'), ('plan', 'dp 2 · tp 2'), ('program', '0123')] 1 True`,
		"gauge planc_grad_norm [] inf True", "gauge planc_mfu_ratio [] nan True",
		"counter planc_tokens_total [] 1099511627776.0 True", "summary planc_step_seconds_count [] 2 True",
		"counter planc_step_part_seconds_total [('part', 'tp_comm')] 0.25 True",
		"counter planc_rank_wait_seconds_total [('rank', '1')] 0.125 True",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("the parser does not return %s", want)
		}
	}
	samples := 0
	for line := range strings.Lines(body) {
		if line[0] != '#' {
			samples++
		}
	}
	if n := strings.Count(got, "\n"); n != samples {
		t.Errorf("%s", fmt.Sprintf("the parser returns %d samples of %d:\n%s", n, samples, got))
	}
}
