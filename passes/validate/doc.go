// Package validate compares predictions with published or own measurements, row by row.
//
// [Parse] reads a table leniently into [Row]s, as contract.md's "validate rows" describes them. [Asker.Question] turns
// a row into a question for the planner: model, cluster, engine, and a plan with all its keys, in which empty cells
// have the defaults of defaults.go. [Run] prices the plans and summarizes the errors in a [Report]. Start reading at
// run.go.
//
// A row that cannot be priced is listed with the reason. What this package does not do: it never assumes values that
// are not documented defaults, and it does no I/O.
package validate
