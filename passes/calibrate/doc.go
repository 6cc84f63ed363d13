// Package calibrate fits a cluster's measured factors to runs on it.
//
// An [Observation] is a plan with the measured time of a step. [Fit] fits the factors of costmodel.Measured that the
// observations determine, by regularised least squares. The other factors keep the catalogue's values. The [Result] has
// for each observation its influence, and its prediction by a fit without it. Start reading at fit.go.
//
// What this package does not do: no I/O, and no reading of tables, which package validate does.
package calibrate
