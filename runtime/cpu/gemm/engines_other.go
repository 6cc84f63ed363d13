//go:build !amd64

package gemm

import "github.com/planc-dev/planc/runtime/cpu/asm"

// faster is empty: there is only plain Go.
var faster [asm.AMX + 1]func()
