// Package cpu holds the arithmetic of a training step on a CPU: matmul, norms, attention, embedding, loss,
// dropout, activations and optimizers, over row-major slices of float32 or float64.
//
// Begin with Kernels in table.go. It has a field for each kernel, whose comment is its loop. Generated code
// fetches the table of its element type once, with Table, and calls kernels only through it, so that a
// faster kernel replaces a field and nothing else. Kernels in plain Go are the reference, and serve
// machines without a faster one. Use puts kernels over assembly into the tables, for the best ISA of the
// machine or a requested one. Functions of one element (Gelu, Keep, ...) are exported for the element-wise
// loops of generated code.
//
// Package gemm has the matmuls, attention the attention, asm their assembly, team the threads, and elem what
// all of them share. Package vec has loops over vectors in assembly.
//
// Conventions: outputs come first, then inputs, then sizes. A d in front of a name is the gradient of the
// loss with respect to it. acc adds to the output's previous contents; without it the output is
// overwritten. Outputs do not overlap inputs unless a kernel's comment allows it. cols, rows, m, n, k, dim
// are numbers of elements. lo and n of a table or a row of logits say which part of the vocabulary this
// rank has: the ids lo to lo+n-1.
//
// Threads: a kernel may divide its work into parts that a team's threads execute (package team). The parts
// depend only on the sizes, so that results do not depend on the number of threads.
//
// The same input and ISA give the same bits. Every sum has a fixed order. In plain Go, every multiplication is
// converted before it is added (F(a*b) + c), which forbids the compiler to use a fused multiply-add. Exp,
// its relatives and the logarithm are our own for the same reason. The functions used from package math are
// exact (Sqrt), or rarely matter (Pow, Sin, Cos in RoPE; Erfc in GeluErf, whose last bit may differ between
// kinds of machines). Sums are in float64, except those of MatMul, Attention's matmuls, Add and EmbedGrad,
// which are in F.
//
// No kernel allocates once the pool of scratch memory is warm. Kernels do not check sizes, which the
// compiler guarantees; a slice that is too short panics.
package cpu
