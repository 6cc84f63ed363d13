// Package cpu holds the arithmetic of a training step on a CPU: matrix product, normalisation, attention, embedding,
// loss, dropout, activations and optimizers, over row-major slices of float32 or float64.
//
// Begin with Kernels in table.go: one field a kernel, each documented by its loop. Generated code fetches the table of
// its element type once, with Table, and calls kernels through it alone, so that a faster kernel replaces a field and
// nothing else. Kernels in plain Go are the reference and the path of machines without a faster one; those in assembly,
// which tools/avo writes (z*_amd64.s), are put into the tables by Use, for the ISA that the machine has or the one
// asked for (isa.go, isa_amd64.go). Functions of one element (Gelu, Keep, ...) are exported as they are, for the
// element-wise loops that generated code writes out.
//
// Legend. Outputs come first, then inputs, then sizes; d before a name is the gradient of the loss by it. acc adds to
// what the output held; without it the output is overwritten, whatever it held. Outputs do not overlap inputs, except
// where a kernel says so. cols, rows, m, n, k, dim are numbers of elements; lo and n of a table or a row of logits say
// which part of the vocabulary is here: the ids lo to lo+n-1.
//
// Threads: a kernel may cut its work into parts that a team's threads do (team.go). The parts follow from the sizes
// alone, so that no bit of a result depends on the number of threads.
//
// Same input, same ISA, same bits: every sum has one fixed order, and in plain Go every product that is then added is
// converted first (F(a*b) + c), which forbids the compiler to fuse the two where the machine could. Exp, its relatives
// and the logarithm are our own for the same reason. What remains of package math is exact (Sqrt), or seldom matters
// (Pow, Sin, Cos in RoPE; Erfc in GeluErf: there the last bit may differ between kinds of machine). Sums run in
// float64, except those of MatMul, Attention's products, Add and EmbedGrad, which run in F.
//
// No kernel allocates, once the pool of scratch is warm. Sizes are the compiler's promise: kernels do not check them,
// and a slice that is too short panics.
package cpu
