package runtime

import (
	"fmt"
	"math"
)

// dynamicScale holds the defaults of a dynamic scale.
var dynamicScale = LossScaleSettings{Kind: "dynamic", Init: 65536, Window: 1000, Hysteresis: 2, Min: 1}

// scaler is the loss scale of a run. Its state is saved in checkpoints.
type scaler struct {
	rule  LossScaleSettings
	scale float64
	good  int // steps since the last bad one
	free  int // further bad steps that do not change the scale
}

// maxScaleCount bounds the step counts that are read from a checkpoint, so that they do not overflow later.
const maxScaleCount int64 = 1 << 53

func newScaler(rule LossScaleSettings) scaler {
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

// setLossScale parses none, dynamic, or a number. The settings below it change single fields.
func setLossScale(s *Settings, v any) error {
	to := &s.Train.Precision.LossScale
	switch v {
	case "none":
		*to = LossScaleSettings{Kind: "none"}
		return nil
	case "dynamic":
		*to = dynamicScale
		return nil
	}
	x, err := number(v)
	if err != nil {
		return fmt.Errorf("%v is not none, dynamic or a number", v)
	}
	*to = LossScaleSettings{Kind: "static", Init: x}
	return nil
}

// checkLossScale refuses invalid settings.
func checkLossScale(s *LossScaleSettings) error {
	switch {
	case (s.Kind == "static" || s.Kind == "dynamic") && !(s.Init > 0 && s.Init <= math.MaxFloat32):
		return fmt.Errorf("train.precision.loss_scale begins at %g; it must be above 0 and fit float32",
			s.Init)
	case s.Kind == "dynamic" && (s.Window < 1 || s.Hysteresis < 1 || !(s.Min > 0)):
		return fmt.Errorf("train.precision.loss_scale has window %d, hysteresis %d, min %g; window and hysteresis "+
			"must be at "+
			"least 1, and min must be above 0", s.Window, s.Hysteresis, s.Min)
	}
	return nil
}
