package driver

import (
	"fmt"
	"math"

	"github.com/planc-dev/planc/runtime/program"
)

// scaler is the loss scale of a run. Its state is saved in checkpoints.
type scaler struct {
	rule  program.LossScaleSettings
	scale float64
	good  int // steps since the last bad one
	free  int // further bad steps that do not change the scale
}

// maxScaleCount bounds the step counts that are read from a checkpoint, so that they do not overflow later.
const maxScaleCount int64 = 1 << 53

func newScaler(rule program.LossScaleSettings) scaler {
	s := scaler{rule: rule, scale: 1, free: rule.Hysteresis - 1}
	if s.on() {
		s.scale = rule.Init
	}
	return s
}

// on reports whether the loss is scaled.
func (s *scaler) on() bool { return s.rule.Kind == "static" || s.rule.Kind == "dynamic" }

// adapts reports whether a bad step only means that the scale is still too large.
func (s *scaler) adapts() bool { return s.rule.Kind == "dynamic" && s.scale > s.rule.Min }

// update records a step.
func (s *scaler) update(bad bool) {
	if s.rule.Kind != "dynamic" {
		return
	}
	if bad {
		s.good = 0
		if s.free > 0 {
			s.free--
		} else {
			s.scale = max(s.scale/2, s.rule.Min)
		}
		return
	}
	s.good++
	grows := s.good%s.rule.Window == 0
	if grows || s.rule.Consecutive {
		s.free = s.rule.Hysteresis - 1
	}
	if grows && 2*s.scale <= math.MaxFloat32 {
		s.scale *= 2
	}
}

// text returns the state for a checkpoint; "" for a scale that never changes.
func (s *scaler) text() string {
	if s.rule.Kind != "dynamic" {
		return ""
	}
	return fmt.Sprintf("%g %d %d", s.scale, s.good, s.free)
}

// restore reads what text has returned. If the checkpoint has no dynamic scale, the scale starts at Init.
func (s *scaler) restore(text string) error {
	if text == "" || s.rule.Kind != "dynamic" {
		return nil
	}
	if _, err := fmt.Sscanf(text, "%g %d %d", &s.scale, &s.good, &s.free); err != nil {
		return fmt.Errorf("its loss scale %q cannot be read: %w", text, err)
	}
	if !(s.scale > 0 && s.scale <= math.MaxFloat32) || min(s.good, s.free) < 0 ||
		int64(max(s.good, s.free)) > maxScaleCount {
		return fmt.Errorf("its loss scale %q is invalid: the scale must be above 0 and fit float32, and counts "+
			"must be from "+
			"0 to %d", text, maxScaleCount)
	}
	return nil
}
