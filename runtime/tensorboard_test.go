package runtime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/report"
)

// scalars are the numbers of a run: tag, step, value.
type scalars map[string]map[int]float64

// loggedScalars returns the numbers of metrics.jsonl, of which a later line for the same step replaces an earlier one.
func loggedScalars(t *testing.T, dir string) scalars {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, report.MetricsFile))
	must(t, err)
	all := scalars{}
	for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var values map[string]any
		must(t, json.Unmarshal(line, &values))
		step := int(values["step"].(float64))
		if e := values["event"]; e == "start" || e == "resume" {
			for _, steps := range all {
				maps.DeleteFunc(steps, func(s int, _ float64) bool { return s > step })
			}
		}
		for tag, v := range values {
			if tag != "t" && tag != "attempt" && tag != "step" {
				all.add(tag, step, v)
			}
		}
	}
	return all
}

// add adds a value of metrics.jsonl: a number, null, or a list or an object of these.
func (all scalars) add(tag string, step int, value any) {
	switch v := value.(type) {
	case []any:
		for i, x := range v {
			all.add(fmt.Sprintf("%s/%d", tag, i), step, x)
		}
		return
	case map[string]any:
		for k, x := range v {
			all.add(tag+"/"+k, step, x)
		}
		return
	case string:
		return
	case nil:
		value = math.NaN()
	}
	if all[tag] == nil {
		all[tag] = map[int]float64{}
	}
	all[tag][step] = value.(float64)
}

// readByTensorBoard prints the scalars of a folder's event files as TensorBoard reads them: [tag, step, value] a line.
const readByTensorBoard = `
import json, math, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
for tag in events.Tags()["scalars"]:
    for e in events.Scalars(tag):
        print(json.dumps([tag, e.step, None if math.isnan(e.value) else e.value]))
`

// TensorBoard's own reader reads from a run's event files the numbers of its metrics.jsonl, also after a run that was
// resumed before its last step. PLANC_TENSORBOARD is a Python that has TensorBoard.
func TestTensorBoardReadsARun(t *testing.T) {
	python := os.Getenv("PLANC_TENSORBOARD")
	if python == "" {
		t.Skip("PLANC_TENSORBOARD is not set")
	}
	dir := t.TempDir()
	every := Set("train.checkpoint.every", 4)
	_, err := train(t, bigram[float32](2, 1), dir, every, Set("train.steps", 10), Set("train.eval.every", 3),
		ParamNorms(2))
	must(t, err)
	for _, newer := range []string{"step-00000010", "step-00000008"} {
		must(t, os.RemoveAll(filepath.Join(dir, "checkpoints", newer)))
	}
	_, err = train(t, bigram[float32](2, 1), dir, every, Set("train.steps", 7))
	must(t, err)

	out, err := exec.Command(python, "-c", readByTensorBoard, dir).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, err.(*exec.ExitError).Stderr)
	}
	got := scalars{}
	for _, line := range bytes.Split(bytes.TrimSpace(out), []byte("\n")) {
		var e []any
		must(t, json.Unmarshal(line, &e))
		got.add(e[0].(string), int(e[1].(float64)), e[2])
	}
	want := loggedScalars(t, dir)
	if len(want["loss"]) != 7 || len(want["valid_loss"]) == 0 {
		t.Fatalf("the run has %d losses and %d evaluations", len(want["loss"]), len(want["valid_loss"]))
	}
	sameScalars(t, got, want)
}

// sameScalars compares scalars, whose values are rounded to 32 bits in the first.
func sameScalars(t *testing.T, got, want scalars) {
	t.Helper()
	for _, tag := range slices.Sorted(maps.Keys(want)) {
		rounded := map[int]float64{}
		for step, x := range want[tag] {
			rounded[step] = float64(float32(x))
		}
		if fmt.Sprint(got[tag]) != fmt.Sprint(rounded) {
			t.Errorf("%s: TensorBoard has %v, metrics.jsonl %v", tag, got[tag], rounded)
		}
		delete(got, tag)
	}
	if len(got) > 0 {
		t.Errorf("TensorBoard has more: %v", got)
	}
}
