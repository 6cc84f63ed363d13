//go:build cuda && linux

package module

import (
	"fmt"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cuda"
)

// A size that does not fit into a kernel's 32-bit parameter ends the rank by the name of the kernel, and is not
// truncated.
func TestSizesDoNotWrap(t *testing.T) {
	call := func(rows int) (text string) {
		defer func() { text = fmt.Sprint(recover()) }()
		AddArguments(&cuda.Args{}, "part", []any{cuda.Pointer(0), cuda.Pointer(0), rows, 1, 1, 0})
		return ""
	}
	if text := call(1<<31 - 1); text != "<nil>" {
		t.Error(text)
	}
	if text := call(1 << 31); !strings.Contains(text, "argument 2 of part is 2147483648") {
		t.Error(text)
	}
}
