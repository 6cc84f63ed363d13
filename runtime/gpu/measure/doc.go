// Package measure measures the GPUs of a machine: GEMMs, attention, copies, launches of kernels and collectives. The
// program that planc calibrate builds calls [Main], which prints a [Measurement].
//
// Begin with measurement.go, which defines the result. It has no build tags, because planc reads it. bench.go runs the
// measurements of work.go, fp8.go and collectives.go on all GPUs at once.
package measure
