// Package main generates the assembly of runtime/vec: loops over float32s for AVX-512 and for AVX2 with
// FMA.
//
//	go run ./avo/vector          in tools/: writes runtime/vec/z*_amd64.{s,go}
//
// A kernel is a function of this package that is written once, for a machine (machine.go): its vectors have
// 16 or 8 lanes, and the last, partial one is masked. list in main.go has a row for each. The generated
// files are committed, so that a build needs neither this module nor avo. A test here compares them with
// the output of the generators.
//
// Kernels check nothing: the length of their first slice is that of all. None keeps a pointer.
package main
