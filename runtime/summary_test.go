package runtime

import (
	"strings"
	"testing"
)

// A run says where its steps took as long as the prediction excludes, and there alone.
func TestUnexpectedSteps(t *testing.T) {
	for _, c := range []struct {
		predicted, part, measured float64
		says                      bool
	}{
		{0.1, 0.5, 0.06, false}, {0.1, 0.5, 0.149, false}, {0.1, 0.5, 0.04, true}, {0.1, 0.5, 0.2, true}, {0.1, 0, 0.2, false}, {0, 0.5, 0.2, false},
	} {
		off := unexpected(&Predict{StepSeconds: c.predicted, StepError: c.part}, &Result{StepSeconds: c.measured})
		if got := strings.HasPrefix(off, "outside the predicted 50.0 ms to 150.0 ms: planc calibrate"); got != c.says {
			t.Errorf("%v ± %v, measured %v: %q", c.predicted, c.part, c.measured, off)
		}
	}
}
