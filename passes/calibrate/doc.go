// Package calibrate fits a cluster's measured factors to runs on it.
//
// An [Observation] is a plan with the time that a step of it took. [Fit] finds the few factors of costmodel.Measured
// that the observations identify, by regularised least squares: what they say nothing about stays as the catalogue has
// it. The [Result] says of each observation what it changed and how well it is predicted by a fit without it.
//
// The package does no I/O and reads no tables: package validate does. Begin at fit.go.
package calibrate
