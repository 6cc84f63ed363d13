// Package rng is a counter-based random generator: a value is a pure function of a key and a counter, so
// any rank can draw element i of a tensor without drawing the elements before it, and every plan, machine
// and number of threads draws the same model.
//
// Derive a key with Key and KeyString from what names the draw (seed, parameter, layer), then ask for
// Bits, Uniform, Normal or Keep by index. There is no state to save in a checkpoint.
//
// The package does not aim at secrecy: keys are mixed well, but not cryptographically. Floating-point
// results are the same bit for bit on all of Go's platforms: products are rounded explicitly, so that no
// compiler may fuse them with a sum, and the logarithm is our own (math.Log has variants by platform).
package rng
