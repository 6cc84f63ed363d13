// Package search finds the best plan of a job and says why.
//
// [Search] goes over every legal plan: [Legal] is the one place that says what is legal, enumerate.go lists the plans
// in normal form, each once, in families that leave sharding, recomputation and the order of the axes open. What a
// block costs and keeps is found by running the passes on it once per key (profile.go, bound.go), as lines over the
// micro-batch (blocks.go); where parameters and their state live, once per way of sharding (state.go); which chunks of
// a split are alike, once per split (frame.go). What the layers of plans with the same degrees and micro-batch take,
// however they are split, is a first bound (cell.go). From these a plan's memory is a closed form, exact to the byte
// (arena.go), and so is a lower bound of its time (floor.go): quote.go puts both together, and the step that is
// simulated, once a bound that is dearer and closer lets it through (pipelined.go). A test equates closed forms with
// the passes' own tables (program.go), another those with compiled programs (compose.go): what is priced is what runs.
// A plan is left out only if a bound that cannot be wrong says that it does not fit or cannot be faster. What would be
// the next best of each choice is asked of the same families, on two cores where there are many (twin.go).
//
// Which plan is recommended: of those that take at most 2 % longer than the fastest, which predictions do not tell from
// it, the one with the least memory pressure, then the simplest (risk.go, robust.go).
//
// Ties: of all plans within 1e-9 of the fastest, relative, the first in the order of the space is taken: tp ascending,
// then sp false before true, zero ascending, micro_batch ascending, dp ascending.
//
// The package does no I/O, and its results do not depend on the machine. Begin at search.go.
package search
