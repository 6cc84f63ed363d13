//go:build cuda && linux

package gpu

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	rt "github.com/planc-dev/planc/runtime"
)

// alone runs a program without observers, so that each step is launched before the results of the previous
// one arrive. It returns the lines of the log, without times and properties of the machine, and the folder.
func alone(t *testing.T, p *rt.Program, opts ...rt.Option) (lines []map[string]any, dir string) {
	t.Helper()
	if p.Devices != nil && emulate.Skipped() != "" {
		t.Skip(emulate.Skipped())
	}
	dir = t.TempDir()
	if _, err := rt.Run(t.Context(), p, append([]rt.Option{rt.Dir(dir), rt.Data(drawn{}),
		rt.Logger(slog.New(slog.DiscardHandler))}, opts...)...); err != nil {
		t.Fatal(err)
	}
	for _, line := range logged(t, dir) {
		if e := line["event"]; e == "start" || e == "checkpoint" {
			line["detail"] = ""
		}
		maps.DeleteFunc(line, func(key string, _ any) bool {
			return slices.Contains([]string{"t", "step_s", "tokens_per_s", "mfu", "memory_bytes", "time_s",
				"wait_s", "busy_s", "skew", "stall_s", "write_s"}, key) ||
				strings.HasPrefix(key, "gpu_")
		})
		lines = append(lines, line)
	}
	return lines, dir
}

// logged returns the lines of the log of the folder's run.
func logged(t *testing.T, dir string) (lines []map[string]any) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		line := map[string]any{}
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

// secondsOf returns the logged seconds of each step of the folder's run.
func secondsOf(t *testing.T, dir string) map[int]float64 {
	t.Helper()
	out := map[int]float64{}
	for _, line := range logged(t, dir) {
		if s, ok := line["step_s"].(float64); ok {
			out[int(line["step"].(float64))] = s
		}
	}
	return out
}

// sameLines checks that the lines are the same, in the same order, except for rounding.
func sameLines(t *testing.T, got, want []map[string]any, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d lines, on a CPU %d:\n%v\n%v", len(got), len(want), got, want)
	}
	for i, w := range want {
		for key, x := range w {
			a, isNumber := got[i][key].(float64)
			b, ok := x.(float64)
			if ok && isNumber && near(a, b, tolerance) || fmt.Sprint(got[i][key]) == fmt.Sprint(x) {
				continue
			}
			t.Errorf("line %d: %s is %v, on a CPU %v", i+1, key, got[i][key], x)
		}
	}
}

// due returns a program that is evaluated and saved during the run.
func (k toy) due(gpu bool) *rt.Program {
	p := k.program(gpu)
	p.Settings.Train.Steps, p.Settings.Train.Eval.Every, p.Settings.Train.Checkpoint.Every = 11, 4, 5
	return p
}

// Steps that are launched before the previous step has ended train to the same result, and log the same
// lines. With ZeRO 1 and 2 their forward passes overlap the gathers of parameters. Tests that read tensors
// after each step do not show that, because all parameters are gathered before.
func TestAhead(t *testing.T) {
	for _, k := range []toy{{pp: 1}, {pp: 2, zero: 1}, {pp: 2, zero: 3}, {pp: 1, zero: 2, half: true}} {
		t.Run(fmt.Sprintf("%+v", k), func(t *testing.T) {
			want, _ := alone(t, k.due(false))
			got, _ := alone(t, onGPUs(k.due(true), images()))
			tolerance := 1e-11
			if k.half {
				tolerance = 1e-5
			}
			sameLines(t, got, want, tolerance)
		})
	}
}

// Checkpoints that are written while a GPU trains are those that are written between two steps.
func TestCheckpointsAhead(t *testing.T) {
	k := toy{pp: 2, zero: 1, half: true}
	files := func(during bool) map[string][]byte {
		p := k.due(true)
		p.Settings.Train.Checkpoint = rt.CheckpointSettings{Every: 2, Async: during}
		_, dir := alone(t, onGPUs(p, images()))
		paths, err := filepath.Glob(filepath.Join(dir, "checkpoints", "step-*", "*.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string][]byte{}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[strings.TrimPrefix(path, dir)] = b
		}
		return all
	}
	between, during := files(false), files(true)
	if len(between) != 12 {
		t.Errorf("%d files of 6 checkpoints", len(between))
	}
	for name, b := range between {
		if !bytes.Equal(during[name], b) {
			t.Errorf("%s: %d bytes differ", name, len(b))
		}
	}
}

// If a step is skipped after the next one has been launched, the next one has the rates and the loss scale
// that follow a skipped step.
func TestSkipsAhead(t *testing.T) {
	k := toy{pp: 2, zero: 1, half: true}
	program := func(gpu bool) *rt.Program {
		p := k.scaled(gpu)
		p.Settings.Train.Steps = 12
		return p
	}
	want, _ := alone(t, program(false))
	got, _ := alone(t, onGPUs(program(true), images()))
	skips := 0
	for _, line := range want {
		if line["event"] == "skip" {
			skips++
		}
	}
	if skips < 2 {
		t.Errorf("%d steps are skipped, which tries little", skips)
	}
	sameLines(t, got, want, 1e-5)
}

// A checkpoint of a run whose steps overlap continues on a CPU to the same result.
func TestResumesAhead(t *testing.T) {
	program := func(gpu bool, steps int) *rt.Program {
		p := toy{pp: 2, zero: 1}.due(gpu)
		p.Settings.Train.Steps, p.Settings.Train.Schedule = steps, rt.ScheduleSettings{Kind: "constant", Warmup: 2}
		return p
	}
	want, _ := alone(t, program(false, 11))
	_, dir := alone(t, onGPUs(program(true, 6), images()))
	var losses []float64
	rest := rt.OnStep(func(s rt.Step) error {
		losses = append(losses, s.Loss)
		return nil
	})
	if _, err := rt.Run(t.Context(), program(false, 11), rt.Dir(dir), rt.Data(drawn{}),
		rt.Logger(slog.New(slog.DiscardHandler)), rest); err != nil {
		t.Fatal(err)
	}
	if len(losses) != 5 {
		t.Fatalf("%d steps after the 6 of the GPU's", len(losses))
	}
	for _, line := range want {
		step := int(line["step"].(float64))
		if loss, ok := line["loss"].(float64); ok && step > 6 && !near(losses[step-7], loss, 1e-11) {
			t.Errorf("step %d: loss %v, on a CPU from the beginning %v", step, losses[step-7], loss)
		}
	}
}

// An error on the device while the host is ahead names the step that failed. An error on the host names the
// step that it was launching.
func TestFailureAhead(t *testing.T) {
	order := os.Getenv("PLANC_EMULATED_ORDER")
	for _, c := range []struct {
		fail error
		want map[string]string // by the order in which work runs; "" if that is not determined
	}{
		{errors.New("a test's failure"), map[string]string{"early": "step 4: a test's", "late": "step 4: a test's",
			"7": "step 4: a test's"}},
		// When step 4 is loaded, step 3 has run if the emulated device runs all work early, and has not if it runs
		// work when someone waits for it.
		{&cuda.Error{Call: "a collective"}, map[string]string{"early": "step 4: a collective",
			"late": "step 3: a collective"}},
	} {
		p := toy{pp: 1}.program(true)
		forward := p.Segments[0].Forward
		p.Segments[0].Forward = func(r *rt.Rank, b *rt.Block) {
			if d := deviceOf(r); r.ID == 0 && r.StepID == 1 && b.Micro == 0 {
				loads := 1
				d.feed(8, func([]byte) {
					loads++
					if loads == 5 { // the feed is filled at once, and with each batch
						rt.Check(c.fail)
					}
				})
			}
			forward(r, b)
		}
		if emulate.Skipped() != "" {
			t.Skip(emulate.Skipped())
		}
		_, err := rt.Run(t.Context(), onGPUs(p, images()), rt.Dir(t.TempDir()), rt.Data(drawn{}),
			rt.Logger(slog.New(slog.DiscardHandler)))
		want := []string{c.want["early"], c.want["late"]} // either, if the order of work is not determined
		if w := c.want[order]; w != "" {
			want = []string{w}
		}
		if err == nil || !slices.ContainsFunc(want, func(w string) bool { return strings.Contains(err.Error(), w) }) {
			t.Errorf("%s: %v, want %q", order, err, want)
		}
	}
}

// lazy is a Source with a delay.
type lazy struct{ drawn }

func (s lazy) Train(g int64, tokens, labels []int32) (int, error) {
	time.Sleep(20 * time.Millisecond)
	return s.drawn.Train(g, tokens, labels)
}

// The logged time of a step that is launched while no other runs includes the wait for its batch. The
// device's clock, which advances by a millisecond here, does not see the wait.
func TestWaitsForData(t *testing.T) {
	done := rt.OnStep(func(rt.Step) error { return nil })
	_, dir := alone(t, onGPUs(toy{pp: 1}.program(true), images()), rt.Data(lazy{}), done)
	all := 0.0
	for _, s := range secondsOf(t, dir) {
		all += s
	}
	if all < 0.1 { // the first batch alone takes 0.16 s
		t.Errorf("steps took %v s", all)
	}
}
