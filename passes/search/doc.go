// Package search finds the best plan of a job and explains the choice.
//
// Start with [Search] in search.go. It runs a best-first search over all legal plans and returns the fastest plan,
// the recommended plan, and the best alternatives.
//
// The space: package space defines the question ([Problem]) and legality. enumerate.go lists the legal plans, each
// once, grouped into families. A family leaves ZeRO sharding, recomputation and axis order open.
//
// The price of a plan: pricer.go lists the layers of the pricer and owns its caches. The passes compile each kind of
// layer once per key (layerprofile.go). The result is a base profile, whose flops and bytes are linear in the
// micro-batch (baseprofile.go, layermemory.go). statelayout.go says where parameters and optimizer state live under
// each sharding, and pipelinesplit.go which chunks of a pipeline are alike. Memory is then a closed form, exact to
// the byte (stagememory.go), and recompute counts are solved with it (family.go). Time has four levels, from cheap to
// exact: the time of all layers (degreeclass.go), a closed form of the step, a simulation with lower bounds of the
// passes (both in stepbound.go), and the full simulation (candidateprice.go). The first three are lower bounds.
//
// The files of the pricer refer to nothing that belongs to the search, and the search adds no methods to their types
// (pricerfiles_test.go). A family is what the pricer knows of plans that differ only in the open choices, and a
// spaceFamily adds the bounds and branches of a search. A candidate is one plan of a family, and a member adds its
// position in the space. The pricer is not a package of its own yet: the search uses about 90 of its names, and the
// tests of the search compare as many of its parts with the tables of the passes.
//
// The search drops a plan only if a bound that cannot be wrong says that it does not fit or cannot be faster. Tests
// compare the closed forms with the tables of the passes and with compiled programs (plantables.go): what is priced
// is what runs. For each choice, the search also finds the best plan with another value (explain.go), on two cores if
// the space is large (secondworker.go).
//
// The recommendation: predictions cannot rank plans whose steps differ by at most 2 %. Of those within 2 % of the
// fastest, the plan with the least memory pressure is recommended, then the simplest (planrisk.go).
//
// Ties: of all plans within a relative 1e-9 of the fastest, the first in the order of the space is taken. The order
// is tp ascending, sp false before true, zero ascending, micro_batch ascending, dp ascending.
//
// The package does no I/O, and its results do not depend on the machine that computes them.
package search
