//go:build !amd64

package vec

// AVX2 and AVX512 are the tables of instruction sets that this processor does not have.
var AVX2, AVX512 *Kernels
