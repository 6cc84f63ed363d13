// Package main measures the matrix product of package cpu: as a share of the multiply-adds that a core does from its
// registers, and beside OpenBLAS, in turn, on the shapes of three models' steps.
//
//	go run ./bench/gemm -threads 1
//	go run ./bench/gemm -threads 2 -only gpt2
//
// The peer is a small C program (openblas/peer.c) that is compiled against the machine's OpenBLAS and told over a pipe
// what to multiply; it runs with the environment's OPENBLAS_* variables removed, since they can choose slower kernels.
// Begin in main.go.
package main
