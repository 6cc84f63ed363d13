//go:build !amd64

package asm

func detect() (isa ISA, bf16 bool) { return Portable, false }

// Pause delays a thread that waits in a loop.
func Pause(n uint32) {
	for range n {
	}
}

func IsIntel() bool { return false }

// Core returns 0: the core is not known.
func Core() uint32 { return 0 }
