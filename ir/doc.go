// Package ir holds what the compiler thinks in: dims, axes, types that print their sharding, the op table,
// and the three things built of them.
//
// A [Model] is logical and unsharded: segments of (block kind × count), each a [Func]. A [Plan] is the
// decision. A [Program] is the compiled result of one pipeline stage, the same on every rank (SPMD). All
// print as text that parses back to the same thing; tests of passes are written in it. Read [optable.go] first: an
// op is one row, and its [Rule] derives what splitting a dim costs.
//
// # One rule
//
// A rule is an einsum over variables that stand for named dims. "b* m* k*, b* k* n* -> b* m* n*" is matmul:
// a starred variable is any number of dims, `!d` a dim that cannot be split, `a'` the same dim under
// another name, `c(s)` the dims of s merged into one. Which variable a dim belongs to follows from the
// operands and results it occurs in. A dim that a result has is split for free; a dim that it lacks leaves
// a partial value over the axes that split the dim.
//
// # How the six hard cases fall out
//
// Each is a case of passes/testdata, in the text form.
//
//   - GQA with fewer K/V heads than tp: queries have dims head (K/V heads) and group (queries of one K/V
//     head). tp is the product of sub-axes kv and rep; the attention region maps head to kv and group to
//     rep. K and V lack group, so they are replicated over rep, and their gradients reduce it: rep-partial.
//   - Sequence parallelism: norm regions map seq to tp, attention and mlp regions map head or ffn to it. The
//     value that enters is all-gathered, the partial that leaves is resolved where seq is split, which is
//     a reduce-scatter.
//   - ep > dp: experts regroup the ranks of dp·tp as edp·ep·etp ([Mesh] refines both into common atoms).
//     Dispatch merges batch and seq into slot locally; moving slot@dp@tp to expert@ep is an all-to-all; expert
//     gradients reduce slot and are edp-partial.
//   - HSDP: dp is the product of outer and inner; a replica-partial gradient is reduce-scattered over inner
//     and all-reduced over outer.
//   - Ulysses: projections are made where seq is split over cp; attention wants head split over it. The
//     reshard seq@cp → head@cp is one all-to-all for each of q, k, v and one back for the output.
//   - Split-vocabulary loss: embedding and the label's logit are one-hot contractions over vocab (sum-partial),
//     log-sum-exp reduces vocab with log-add-exp; each leaves a small partial that one all-reduce resolves.
//
// What this package does not do: it decides nothing, prices nothing, reads no files.
package ir
