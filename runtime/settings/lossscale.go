package settings

import (
	"fmt"
	"math"

	"github.com/planc-dev/planc/runtime/program"
)

// DynamicScale holds the defaults of a dynamic scale.
var DynamicScale = program.LossScaleSettings{Kind: "dynamic", Init: 65536, Window: 1000, Hysteresis: 2, Min: 1}

// setLossScale parses none, dynamic, or a number. The settings below it change single fields.
func setLossScale(s *program.Settings, v any) error {
	to := &s.Train.Precision.LossScale
	switch v {
	case "none":
		*to = program.LossScaleSettings{Kind: "none"}
		return nil
	case "dynamic":
		*to = DynamicScale
		return nil
	}
	x, err := number(v)
	if err != nil {
		return fmt.Errorf("%v is not none, dynamic or a number", v)
	}
	*to = program.LossScaleSettings{Kind: "static", Init: x}
	return nil
}

// checkLossScale refuses invalid settings.
func checkLossScale(s *program.LossScaleSettings) error {
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
