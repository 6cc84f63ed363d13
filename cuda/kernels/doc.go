// Package kernels holds the handwritten CUDA C++ kernels of a training step, and how each is launched. It
// consists of text and tables: nothing here compiles or launches.
//
// Begin with [Table]. It has a row for each kernel: its parameters, the loop of runtime/cpu that it must
// equal, and the grid and block for a size. In the .cu file, each kernel's function has this loop as its
// comment. [Sources] are the files: one family of kernels each, and base.cuh, which all include. A kernel
// is a template over its storage type; its functions are named like rms_norm_f32, rms_norm_f64,
// rms_norm_bf16, rms_norm_f16. A kernel has the name of the op of package ir if there is one.
//
// Every kernel is deterministic: the order of sums follows from sizes and geometry, and nothing is added
// atomically. Accesses are 16 bytes wide if rows and addresses are aligned.
//
// Tests compare each kernel with the loop of runtime/cpu, in f64 and in each type. They run it with package
// emulate, which needs a C++ compiler and no GPU. GEMMs and kernels of fused groups are not here: libraries
// and codegen provide them.
package kernels
