//go:build !amd64

package cpu

func detect() (isa ISA, bf16 bool) { return Portable, false }

// faster is empty: there is only plain Go.
var faster [numISAs]func(*Kernels[float32], *Kernels[float64])

// pause delays a thread that waits in a loop.
func pause(n uint32) {
	for range n {
	}
}

func isIntel() bool { return false }

// core returns 0: the core is not known.
func core() uint32 { return 0 }
