//go:build !amd64

package vec

// AVX2 and AVX512 are nil: this processor has neither instruction set.
var AVX2, AVX512 *Kernels
