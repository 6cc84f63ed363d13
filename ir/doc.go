// Package ir is the intermediate representation of the compiler: dims, axes, types that print their sharding, the op
// table, and what is built from them.
//
// A [Model] is logical and unsharded: segments of (block kind × count), each a [Func]. A [Plan] is the decision. A
// [Program] is the compiled result, the same on every rank (SPMD), with a table for each pipeline stage. All three
// print as text that parses back to the same value; tests of passes are written in it. Start reading at [optable.go]:
// an op is one row, and its [Rule] determines what splitting a dim costs.
//
// # One rule
//
// A rule is an einsum over variables that stand for named dims. "b* m* k*, b* k* n* -> b* m* n*" is matmul. A starred
// variable is any number of dims, `!d` a dim that cannot be split, `a'` the same dim under another name, and `c(s)` the
// dims of s merged into one. A dim belongs to the variable that occurs in the same operands and results. A dim of a
// result is split without communication. A dim that the result lacks makes it partial over the axes that split the dim.
//
// # How the six hard cases follow from it
//
// Each is a case of passes/testdata, in the text form.
//
//   - GQA with fewer K/V heads than tp: queries have dims head (K/V heads) and group (queries of one K/V head). tp is
//     the product of sub-axes kv and rep; the attention region maps head to kv and group to rep. K and V lack group, so
//     they are replicated over rep, and their gradients reduce it: rep-partial.
//   - Sequence parallelism: norm regions map seq to tp, attention and MLP regions map head or ffn to it. The value that
//     enters a region is all-gathered. The partial that leaves it is resolved into a seq that is split, which is a
//     reduce-scatter.
//   - ep > dp: experts regroup the ranks of dp·tp as edp·ep·etp ([Mesh] refines both into common atoms). Dispatch
//     merges batch and seq into slot locally; moving slot@dp@tp to expert@ep is an all-to-all; expert gradients reduce
//     slot and are edp-partial.
//   - HSDP: dp is the product of outer and inner. A replica-partial gradient is reduce-scattered over inner and
//     all-reduced over outer.
//   - Ulysses: projections are computed with seq split over cp, and attention with head split over it. The reshard
//     seq@cp →
//     head@cp is one all-to-all for each of q, k, v and one back for the output.
//   - Split-vocabulary loss: embedding and the label's logit are one-hot contractions over vocab (sum-partial). The
//     log-sum-exp reduces vocab with log-add-exp. Each leaves a small partial that one all-reduce resolves.
//
// What this package does not do: it decides nothing, prices nothing and reads no files.
package ir
