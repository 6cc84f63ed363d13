// Package main writes the repository's assembly, that of runtime/cpu above all: one row of files a generated file, one
// function of this package a row, each with the loop that its instructions carry out.
//
//	go run ./avo          from tools/: writes z*_amd64.{s,go}
//
// The generated files are committed, so that a build needs neither this module nor avo; a test here compares them with
// what the generators print. Kernels take what their Go callers prepared (pointers, counts that are not zero, masks)
// and check nothing. None keeps a pointer or calls Go.
package main
