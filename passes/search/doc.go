// Package search finds the best plan of a job and says why.
//
// [Search] goes over every legal plan: [Legal] is the one place that says what is legal, space.go lists the plans in
// normal form, each once. What a block costs is found by running the passes on it once per key (tp, sp,
// micro-batch; profile.go); how gradients are resolved once per (dp, tp, sp, zero; state.go); compose.go puts the
// two together: what is priced is what runs, and a test equates both with compiled programs. A plan is left out
// only if a bound that cannot be wrong (bound.go) says that it does not fit or cannot be faster.
//
// Ties: of all plans within 1e-9 of the fastest, relative, the first in the order of the space is taken: tp
// ascending, then sp false before true, zero ascending, micro_batch ascending, dp ascending.
//
// The package does no I/O, and its results do not depend on the machine. Begin at search.go.
package search
