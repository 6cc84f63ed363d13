package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
)

// Bytes a parameter are the same on the screen, in JSON and in the parts of the memory that is priced, for every
// engine, precision and optimizer.
func TestBytesPerParamAreThePricedMemory(t *testing.T) {
	type answer struct {
		Model   struct{ Params int64 }
		Predict costmodel.Predict
	}
	for _, e := range engines.Engines {
		for _, precision := range []string{"f32", "bf16", "fp16", "fp8"} {
			for _, optimizer := range [][]string{{"adamw"}, {"adam"}, {"sgd", "--set", "train.optimizer.momentum=0.9"},
				{"sgd"}} {
				args := append([]string{"plan", "--model", "gpt2-124m", "--cluster", "1xh100", "--seq-len", "128",
					"--global-batch", "8",
					"--engine", e.Name, "--set", "train.precision=" + precision, "--set",
					"train.optimizer.kind=" + optimizer[0]}, optimizer[1:]...)
				code, out, errs := call(args...)
				_, doc, _ := call(append(args, "--json")...)
				var a answer
				if err := json.Unmarshal([]byte(doc), &a); code != 0 || err != nil {
					t.Errorf("%q: exit code %d, %v, %s", args, code, err, errs)
					continue
				}
				m := a.Predict.MemoryBytes
				held := float64(m.Params+m.Grads+m.Optimizer) / float64(a.Model.Params)
				if math.Abs(held-float64(a.Predict.BytesPerParam)) > 0.51 {
					t.Errorf("%q: %d bytes a parameter, and %.2f are priced", args, a.Predict.BytesPerParam, held)
				}
				if want := fmt.Sprintf(" %d B/param\n", a.Predict.BytesPerParam); !strings.Contains(out, want) {
					t.Errorf("%q: %s; want %s", args, out, want)
				}
			}
		}
	}
}
