// Package search finds the best plan of a job and explains the choice.
//
// Start with [Search] in search.go. It runs a best-first search over all legal plans and returns the fastest plan,
// the recommended plan, and the best alternatives.
//
// The space: package space defines the question ([Problem]) and legality. enumerate.go lists the legal plans, each
// once, grouped into families. A family leaves ZeRO sharding, recomputation and axis order open.
//
// The price of a plan: package price predicts the memory and the step of a plan, and gives lower bounds of both. It
// knows nothing of the search. Its family is the plans that differ only in the open choices, and a spaceFamily adds the
// bounds and branches of a search. Its candidate is one plan of a family, and a member adds its position in the space.
//
// The search drops a plan only if a bound that cannot be wrong says that it does not fit or cannot be faster. Tests
// compare it with brute force. For each choice, the search also finds the best plan with another value (explain.go),
// on two cores if the space is large (secondworker.go).
//
// The recommendation: predictions cannot rank plans whose steps differ by at most 2 %. Of those within 2 % of the
// fastest, the plan with the least memory pressure is recommended, then the simplest (planrisk.go).
//
// Ties: of all plans within a relative 1e-9 of the fastest, the first in the order of the space is taken. The order
// is tp ascending, sp false before true, zero ascending, micro_batch ascending, dp ascending.
//
// The package does no I/O, and its results do not depend on the machine that computes them.
package search
