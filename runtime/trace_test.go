package runtime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/driver"
)

// tracing makes a run trace some steps.
func tracing(first, last int) Option {
	return func(o *driver.Options) { o.Trace = driver.TraceSteps{First: first, Last: last} }
}

// traceEvent is an event of Chrome's trace event format.
type traceEvent struct {
	Phase    string `json:"ph"`
	Process  *int   `json:"pid"`
	Thread   *int   `json:"tid"`
	Name     string
	Category string `json:"cat"`
	TS       *float64
	Duration *float64 `json:"dur"`
	Args     map[string]any
}

// readTrace reads a trace and checks it against the trace event format: each event has the fields of its phase, and the
// complete events of a thread are nested.
func readTrace(t *testing.T, path string) []traceEvent {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	var trace struct {
		TraceEvents []traceEvent `json:"traceEvents"`
		Unit        string       `json:"displayTimeUnit"`
		Other       map[string]string
	}
	in := json.NewDecoder(bytes.NewReader(text))
	must(t, in.Decode(&trace))
	if trace.Unit != "ms" {
		t.Errorf("displayTimeUnit is %q", trace.Unit)
	}
	type thread struct{ process, thread int }
	ends := map[thread][]float64{}
	for _, e := range trace.TraceEvents {
		if e.Process == nil || e.Thread == nil || e.Name == "" {
			t.Fatalf("an event without pid, tid or name: %+v", e)
		}
		if e.Phase == "M" {
			if !slices.Contains([]string{"process_name", "process_sort_index", "thread_name", "thread_sort_index"},
				e.Name) || len(e.Args) != 1 {
				t.Errorf("unknown metadata %+v", e)
			}
			continue
		}
		if e.Phase != "X" || e.TS == nil || e.Duration == nil || *e.Duration < 0 || e.Category == "" {
			t.Fatalf("not a complete event: %+v", e)
		}
		k := thread{*e.Process, *e.Thread}
		open := ends[k]
		for len(open) > 0 && *e.TS >= open[len(open)-1]-1e-4 {
			open = open[:len(open)-1]
		}
		if n := len(open); n > 0 && *e.TS+*e.Duration > open[n-1]+1e-3 {
			t.Errorf("%s overlaps the event around it: ends at %v, and that one at %v", e.Name, *e.TS+*e.Duration,
				open[n-1])
		}
		ends[k] = append(open, *e.TS+*e.Duration)
	}
	return trace.TraceEvents
}

// A trace has the traced steps and no others, each with its parts on every rank; and a run that traces trains to the
// same losses.
func TestTrace(t *testing.T) {
	plain, dir := t.TempDir(), t.TempDir()
	options := []Option{Set("train.eval.every", 4), Set("train.checkpoint.every", 4)}
	_, err := train(t, bigram[float32](2, 1), plain, options...)
	must(t, err)
	_, err = train(t, bigram[float32](2, 1), dir, append(options, tracing(3, 4))...)
	must(t, err)
	if got, want := losses(t, dir), losses(t, plain); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("losses with a trace %v, without %v", got, want)
	}
	names, processes := map[string]int{}, map[string]bool{}
	for _, e := range readTrace(t, filepath.Join(dir, "trace-3-4.json")) {
		if e.Name == "process_name" {
			processes[e.Args["name"].(string)] = true
		}
		if e.Phase == "X" {
			names[fmt.Sprintf("%d %s", *e.Process, e.Name)]++
		}
		if strings.HasPrefix(e.Name, "reduce_scatter") && (e.Args["ranks"] != 2.0 || e.Args["wait_us"] == nil) {
			t.Errorf("arguments of a collective: %+v", e)
		}
	}
	for _, want := range []string{"driver", "rank 0 (dp 0)", "rank 1 (dp 1)"} {
		if !processes[want] {
			t.Errorf("no process %s in %v", want, processes)
		}
	}
	want := []string{"0 step 3", "0 step 4", "0 wait for batch 3", "0 evaluate 4", "0 checkpoint 4"}
	for _, rank := range []string{"1 ", "2 "} {
		for _, name := range []string{"step 3", "step 4", "load batch", "forward pass of chunk 0",
			"backward pass of chunk 0", "gradient norm", "update bucket 0", "wait for reduce of bucket 0",
			"reduce bucket 0", "gather bucket 0", "reduce_scatter over dp", "all_gather over dp", "wait"} {
			want = append(want, rank+name)
		}
	}
	for _, name := range want {
		if names[name] == 0 {
			t.Errorf("no event %q", name)
		}
	}
	for name := range names {
		if strings.HasSuffix(name, "step 2") || strings.HasSuffix(name, "step 5") {
			t.Errorf("event %q", name)
		}
	}
}

// A trace whose last steps do not come is written at the end of the run; without any step there is a warning.
func TestTraceAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	_, err := train(t, bigram[float32](1, 0), dir, tracing(11, 20))
	must(t, err)
	steps := 0
	for _, e := range readTrace(t, filepath.Join(dir, "trace-11-20.json")) {
		if *e.Process == 1 && strings.HasPrefix(e.Name, "step ") {
			steps++
		}
	}
	if steps != 2 {
		t.Errorf("%d steps are traced, want 11 and 12", steps)
	}
	var out bytes.Buffer
	_, err = train(t, bigram[float32](1, 0), t.TempDir(), tracing(13, 14), text(&out, false))
	must(t, err)
	const want = "warning: there is no trace: this run has no step from 13 to 14\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("%q does not contain %q", out.String(), want)
	}
}

// Perfetto's trace processor reads a trace without errors, with as many slices as it has complete events.
// PLANC_PERFETTO is a Python that has Perfetto and its trace processor.
func TestPerfettoReadsATrace(t *testing.T) {
	python := os.Getenv("PLANC_PERFETTO")
	if python == "" {
		t.Skip("PLANC_PERFETTO is not set")
	}
	dir := t.TempDir()
	_, err := train(t, bigram[float32](2, 1), dir, tracing(2, 5))
	must(t, err)
	path, want := filepath.Join(dir, "trace-2-5.json"), 0
	for _, e := range readTrace(t, path) {
		if e.Phase == "X" {
			want++
		}
	}
	out, err := exec.Command(python, "-c", `
import sys
from perfetto.trace_processor import TraceProcessor
p = TraceProcessor(trace=sys.argv[1])
print(*[r.n for r in p.query("select count(*) n from slice")],
      *[r.name for r in p.query("select name from stats where severity = 'error' and value > 0")])`, path).Output()
	must(t, err)
	if got := strings.TrimSpace(string(out)); got != fmt.Sprint(want) {
		t.Errorf("slices and errors: %s, want %d", got, want)
	}
}

// The parts of a step add up to its time, and each rank has its own work and waits.
func TestPartsOfAStepAddUp(t *testing.T) {
	dir := t.TempDir()
	_, err := train(t, bigram[float64](4, 1), dir)
	must(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	must(t, err)
	steps, total := 0, map[string]float64{}
	for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var s struct {
			Loss  *float64
			Step  int
			StepS float64            `json:"step_s"`
			Time  map[string]float64 `json:"time_s"`
			Busy  []float64          `json:"busy_s"`
			Wait  []float64          `json:"wait_s"`
			Skew  *float64
		}
		must(t, json.Unmarshal(line, &s))
		if s.Loss == nil {
			continue
		}
		steps++
		sum := 0.0
		for part, x := range s.Time {
			sum += x
			total[part] += x
		}
		if sum < s.StepS-1e-5 || sum > s.StepS+1e-5 {
			t.Errorf("step %d: parts of %v s in %v s", s.Step, sum, s.StepS)
		}
		if len(s.Busy) != 4 || len(s.Wait) != 4 || s.Skew == nil || *s.Skew < 0 || slices.Max(s.Wait) <= 0 {
			t.Errorf("step %d: busy %v, wait %v, skew %v", s.Step, s.Busy, s.Wait, s.Skew)
		}
	}
	if steps != 12 || total["compute"] <= 0 || total["dp_comm"] <= 0 || total["optimizer"] <= 0 {
		t.Errorf("%d steps of parts %v", steps, total)
	}
}
