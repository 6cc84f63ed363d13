// Package exporter serves the metrics of a training run over HTTP, in Prometheus' text format 0.0.4.
//
// A binary has the flag --metrics if it imports this package, for its side effect:
//
//	import _ "github.com/planc-dev/planc/runtime/exporter"
//
// planc compile --with-metrics and planc run ... -- --metrics add this import. It links net/http, which other training
// programs on a CPU do not need.
package exporter

import (
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/timeline"
)

func init() { report.StartExporter = start }

// exporter holds the newest metrics, and sums since the process started.
type exporter struct {
	listener net.Listener
	server   *http.Server

	mu    sync.Mutex
	run   report.RunInfo
	last  report.StepLine // without its lists
	step  report.Step
	valid float64
	steps int // since the process started

	seconds    float64 // sums
	parts      [timeline.Parts]float64
	busy, wait []float64
	skew       float64
	devices    []report.Telemetry
	evaluated  bool
	hasTimes   bool
}

// start listens at an address and serves /metrics.
func start(addr string, run report.RunInfo) (report.Exporter, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	e := &exporter{listener: l, run: run}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", e.serve)
	const limit = 10 * time.Second
	e.server = &http.Server{Handler: mux, ReadHeaderTimeout: limit, WriteTimeout: limit}
	go e.server.Serve(l)
	return e, nil
}

// Addr returns the address at which the exporter listens.
func (e *exporter) Addr() string { return e.listener.Addr().String() }

// Close ends serving.
func (e *exporter) Close() { e.server.Close() }

// Step stores the metrics of a step.
func (e *exporter) Step(s *report.StepLine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.step, e.last = *s.Step, *s
	e.last.Step, e.last.Times, e.last.Telemetry, e.step.Experts = nil, nil, nil, nil
	e.steps++
	e.seconds += s.Seconds
	e.devices = append(e.devices[:0], s.Telemetry...)
	if s.Times == nil {
		return
	}
	e.hasTimes = true
	for p, x := range s.Times.Parts {
		e.parts[p] += x
	}
	if e.busy == nil {
		e.busy, e.wait = make([]float64, len(s.Times.Busy)), make([]float64, len(s.Times.Busy))
	}
	for i, x := range s.Times.Busy {
		e.busy[i] += x
		e.wait[i] += s.Times.Wait[i]
	}
	e.skew = s.Times.Skew
}

// Valid stores the loss of an evaluation.
func (e *exporter) Valid(loss float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.valid, e.evaluated = loss, true
}

// serve answers a scrape.
func (e *exporter) serve(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(e.text())
}
