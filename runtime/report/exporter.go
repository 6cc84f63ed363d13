package report

// Exporter serves the metrics of a run to a monitoring system.
type Exporter interface {
	// Step and Valid show the metrics of a step, and of an evaluation. They do not wait.
	Step(s *StepLine)
	Valid(loss float64)
	// Addr returns the address at which it listens.
	Addr() string
	Close()
}

// RunInfo describes a run to an exporter.
type RunInfo struct{ Name, Plan, Program string }

// StartExporter starts an exporter at an address such as ":9400". It is nil in binaries without one: package exporter
// sets it, so that only binaries that import that package link an HTTP server.
var StartExporter func(addr string, run RunInfo) (Exporter, error)
