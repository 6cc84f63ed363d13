// Package rng is a counter-based random number generator: a value is a pure function of a key and a
// counter. Any rank can draw element i of a tensor without drawing the elements before it, so every plan,
// machine and number of threads initializes the same model.
//
// Derive a key with Key and KeyString from what identifies the draw (seed, parameter, layer), then call
// Bits, Uniform, Normal or Keep with an index. There is no state to save in a checkpoint.
//
// The package is not cryptographically secure. Floating-point results have the same bits on all of Go's
// platforms: multiplications are rounded explicitly, so that the compiler cannot use fused multiply-adds, and the
// logarithm is our own, because math.Log differs by platform.
package rng
