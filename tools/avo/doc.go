// Package main generates the repository's assembly, mainly that of runtime/cpu/asm. Each row of files is a
// generated file. Each function of this package generates a part of one, and each generated function has
// its loop as its comment.
//
//	go run ./avo          in tools/: writes z*_amd64.{s,go}
//
// The generated files are committed, so that a build needs neither this module nor avo. A test here
// compares them with the output of the generators. Kernels rely on what their Go callers pass (pointers,
// counts above zero, masks) and check nothing. None keeps a pointer or calls Go.
package main
