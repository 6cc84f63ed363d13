// Package kernels holds the CUDA C++ of a training step, written by hand, and says how each kernel is launched. It is
// text and tables: nothing here compiles or launches.
//
// Begin with [Table]: a row a kernel, with its parameters, the loop of runtime/cpu that it equals, and the grid and
// block of a size. Its function in the .cu file has the loop above it. [Sources] are the files: one family of kernels
// each, and base.cuh, which all include. A kernel is a template over the type in which numbers are stored; its
// functions are named rms_norm_f32, rms_norm_f64, rms_norm_bf16, rms_norm_f16. Names are those of the ops of package ir
// where there is one.
//
// Every kernel is deterministic: sums have one order, which follows from sizes and geometry; nothing is added
// atomically. Accesses are of 16 bytes where rows and addresses allow it.
//
// Tests hold each kernel against the loop of runtime/cpu, in f64 and in each type, by way of package emulate, which
// needs a C++ compiler and no GPU. Matrix products and kernels of fused groups are not here: libraries and codegen make
// those.
package kernels
