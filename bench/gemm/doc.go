// Package main measures the GEMM of package cpu as a share of the multiply-adds that a core does from its registers. It
// compares the GEMM with OpenBLAS in alternating turns, on the shapes of three models' steps.
//
//	go run ./bench/gemm -threads 1
//	go run ./bench/gemm -threads 2 -only gpt2
//
// The peer is a small C program (openblas/peer.c) that is compiled with the machine's OpenBLAS and receives shapes over
// a pipe. It runs without the environment's OPENBLAS_* variables, because they can select slower kernels. Start in
// main.go.
package main
