// Package vec holds loops over float32s in assembly, which packages cpu, num and comm of the runtime call
// on processors with vectors. Begin with Kernels in table.go, which has a field for each loop. Processors
// with AVX-512, or with AVX2 and FMA, have a table; on others, callers run their own loops in Go.
//
// tools/avo/vector generates the assembly, from one source for both instruction sets. It checks nothing:
// the first slice's length is that of all, unless a loop says otherwise. Outputs may be inputs, element by
// element. Elements are independent of their neighbours and of the slices' alignment. Sums have a fixed
// order that depends only on the length and on the instruction set, so that the same input gives the same
// bits on the same kind of machine.
//
// Accuracy in ulp of float32, measured by the tests over the whole range: e^x within 1.01; functions of it
// within 4, or within 1e-7 of the largest term if terms cancel.
package vec
