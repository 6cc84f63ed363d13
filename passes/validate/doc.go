// Package validate holds predictions against published or own measurements, row by row.
//
// [Parse] reads a table leniently into [Row]s, as contract.md's "validate rows" describes them; [Row.Question] makes a
// question for the planner of one: model, cluster, engine and a plan with all its keys, where what the row leaves empty
// takes the defaults of defaults.go; [Run] prices the plans and sums the errors up in a [Report].
//
// A row that cannot be priced is listed with the reason and never guessed around. The package does no I/O.
// Begin at run.go.
package validate
