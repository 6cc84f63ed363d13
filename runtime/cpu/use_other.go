//go:build !amd64

package cpu

// faster is empty: there is only plain Go.
var faster [AMX + 1]func(*Kernels[float32], *Kernels[float64])
