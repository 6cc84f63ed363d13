// Package price predicts the memory and the step time of a plan, and gives lower bounds of both.
//
// [New] returns the [Pricer] of a problem. It prices a plan in this order, in which the files are best read:
//
//   - The passes compile each kind of layer once per key (layerprofile.go), on other cores in advance if a search asks
//     for it (precompile.go). The result is a base profile, whose flops and bytes are linear in the micro-batch
//     (baseprofile.go, layermemory.go). Under engines other than planc, layers come from costmodel/engines
//     (engineprofile.go).
//   - The collectives of a layer take a route over the links of the cluster (commroutes.go). With the compute on a
//     device, they give the time of a layer (layerprofile.go, layertimes.go, moeload.go).
//   - The layers are divided into the chunks of a pipeline, of which most are alike (pipelinesplit.go). statelayout.go
//     says where parameters and optimizer state live under each sharding.
//   - Memory is a closed form of these, exact to the byte (stagememory.go). The recompute count is solved with it
//     (family.go).
//   - The step has four prices, from cheap to exact: the time of all layers (degreeclass.go), a closed form, a
//     simulation with lower bounds of the passes (both in stepbound.go), and the full simulation (candidateprice.go).
//     The first three are lower bounds.
//
// A search asks about many plans that have much in common, so what is known belongs to the largest set of plans for
// which it holds. A [DegreeClass] is the plans that agree in degrees and micro-batch. A [Family] is those of a class
// that differ only in sharding, recomputation and axis order. A [Candidate] is one plan of a family. A [Memo] is what
// holds for all plans of a model with a recipe, on any cluster or on one.
//
// What is priced is what runs. Tests compare the closed forms with the tables that the passes make of a plan
// (plantables.go, tablestep.go), and with compiled programs (traffic.go).
//
// The package knows nothing of the search. It does no I/O, and its results do not depend on the machine that computes
// them.
package price
