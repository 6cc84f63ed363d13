// Package space defines the question of a search and the plans that may answer it.
//
// [Problem] is the question: a model, a cluster, a batch and the pinned keys of the plan ([Pins]). [Legal] returns the
// rules that a plan breaks; the tables of rules in the legal*.go files are the only definition of legality. [Check]
// does the same for a plan from a file, including pins. triedvalues.go and openchoices.go list the values of each key
// that a search tries: degrees, schedules, micro-batches, and the choices that a family of plans leaves open
// ([Sharding], [RecomputeChoice], axis orders). [Restricted] names the legal plans that are not tried unless a pin
// requests them.
//
// The package knows nothing of the memory and time of a plan, and does no I/O. Start reading at problem.go and
// legal.go.
package space
