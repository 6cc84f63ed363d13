// Package vec holds loops over float32s in assembly: what packages cpu, num and comm of the runtime call where the
// processor has vectors. Begin with Kernels in table.go: one field a loop, each documented by it. A processor with
// AVX-512, or with AVX2 and FMA, has a table; others have none, and callers then run their own loops in Go.
//
// The assembly is written by tools/avo/vector, once for both instruction sets. It checks nothing: the first slice's
// length is that of all, unless a loop says otherwise. Outputs may be inputs, element by element. Elements are
// independent of their neighbours and of the slices' alignment; sums have a fixed order that depends on the length and
// on the instruction set alone. So the same input has the same bits on the same kind of machine.
//
// Accuracy, in units of the last place of float32, measured by the tests over the whole range: e^x within 1.01; what is
// made of it within 4, or 1e-7 of the largest value beside it where terms cancel.
package vec
