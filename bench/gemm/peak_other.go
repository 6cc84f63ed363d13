//go:build !amd64

package main

func fma512(steps uint64) {}

func fma256(steps uint64) {}
