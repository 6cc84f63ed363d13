// Package search finds the best plan of a job and says why.
//
// [Search] goes over every legal plan: [Legal] is the one place that says what is legal, enumerate.go lists the plans
// in normal form, each once, in families that leave sharding, recomputation and the order of the axes open. What a
// block costs and keeps is found by running the passes on it once per key (layerprofile.go, baseprofile.go), as lines over the
// micro-batch (layermemory.go); where parameters and their state live, once per way of sharding (statelayout.go); which chunks of
// a split are alike, once per split (pipelinesplit.go). What the layers of plans with the same degrees and micro-batch take,
// however they are split, is a first bound (degreeclass.go). From these a plan's memory is a closed form, exact to the byte
// (stagememory.go), and so is a lower bound of its time (stepbound.go): candidateprice.go puts both together, and the step that is
// simulated, once a bound that is dearer and closer lets it through (simulatedbound.go). A test equates closed forms with
// the passes' own tables (plantables.go), another those with compiled programs (composition.go): what is priced is what runs.
// A plan is left out only if a bound that cannot be wrong says that it does not fit or cannot be faster. What would be
// the next best of each choice is asked of the same families, on two cores where there are many (secondworker.go).
//
// Which plan is recommended: of those that take at most 2 % longer than the fastest, which predictions do not tell from
// it, the one with the least memory pressure, then the simplest (planrisk.go, leastrisk.go).
//
// Ties: of all plans within 1e-9 of the fastest, relative, the first in the order of the space is taken: tp ascending,
// then sp false before true, zero ascending, micro_batch ascending, dp ascending.
//
// The package does no I/O, and its results do not depend on the machine. Begin at search.go.
package search
