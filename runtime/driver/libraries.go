package driver

import (
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// reportLibraries prints the lines.
func (r *run) reportLibraries() {
	if f, ok := r.p.Devices.(rank.LibraryReporter); ok {
		for _, text := range f.Libraries() {
			r.report.Info(text, "found", "what", text)
		}
	}
}

// telemetryOf returns the telemetry of devices, if they have it.
func telemetryOf(d rank.Devices) []report.Telemetry {
	if s, ok := d.(rank.TelemetrySource); ok {
		return s.Telemetry()
	}
	return nil
}
