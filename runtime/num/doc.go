// Package num holds the 16-bit types in which a program stores parameters and activations: [BF16] and
// [F16]. Nothing is computed in them: a kernel widens them to float32, computes, and rounds its result
// once, to nearest, ties to even. It also defines the FP8 formats ([FP8Format]) for operands of matmuls.
package num
