package runtime

import "github.com/planc-dev/planc/runtime/report"

// LibraryReporter is implemented by [Devices] that report, after all ranks have opened theirs, the libraries that they
// found and what they are used for, one line each: "NCCL 2.30.7: …".
type LibraryReporter interface {
	Libraries() []string
}

// reportLibraries prints the lines.
func (r *run) reportLibraries() {
	if f, ok := r.p.Devices.(LibraryReporter); ok {
		for _, text := range f.Libraries() {
			r.report.Info(text, "found", "what", text)
		}
	}
}

// TelemetrySource is implemented by [Devices] with telemetry. Telemetry does not wait: it returns the latest values of
// each device, or nothing if there are none. They are written to the metrics of steps.
type TelemetrySource interface {
	Telemetry() []report.Telemetry
}

// telemetryOf returns the telemetry of devices, if they have it.
func telemetryOf(d Devices) []report.Telemetry {
	if s, ok := d.(TelemetrySource); ok {
		return s.Telemetry()
	}
	return nil
}
