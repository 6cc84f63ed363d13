package rank

import "github.com/planc-dev/planc/runtime/report"

// LibraryReporter is implemented by [Devices] that report, after all ranks have opened theirs, the libraries that they
// found and what they are used for, one line each: "NCCL 2.30.7: …".
type LibraryReporter interface {
	Libraries() []string
}

// TelemetrySource is implemented by [Devices] with telemetry. Telemetry does not wait: it returns the latest values of
// each device, or nothing if there are none. They are written to the metrics of steps.
type TelemetrySource interface {
	Telemetry() []report.Telemetry
}
