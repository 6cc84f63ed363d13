//go:build cuda && linux

package module

import (
	"fmt"
	"strings"
	"sync"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
)

// Family returns a kernel's row of the table.
func Family(name string) *kernels.Kernel {
	k := families()[name]
	if k == nil {
		panic("gpu: unknown kernel " + name)
	}
	return k
}

var families = sync.OnceValue(func() map[string]*kernels.Kernel {
	all := map[string]*kernels.Kernel{}
	for i := range kernels.Table {
		all[kernels.Table[i].Name] = &kernels.Table[i]
	}
	return all
})

// AddArguments adds the arguments of a kernel of the table, and checks each against its parameter's kind.
func AddArguments(a *cuda.Args, name string, args []any) *cuda.Args {
	kinds := kindsOf(name)
	if len(args) != len(kinds) {
		panic(fmt.Sprintf("gpu: %s takes %d arguments, not %d", name, len(kinds), len(args)))
	}
	for i, x := range args {
		if n, ok := x.(int); ok && int(int32(n)) != n {
			panic(fmt.Sprintf("gpu: argument %d of %s is %d, which exceeds 32 bits", i, name, n))
		}
		if got := addArgument(a, x); !strings.Contains(got, kinds[i]) {
			panic(fmt.Sprintf("gpu: argument %d of %s has kind %s, but must have %s", i, name, got, kinds[i]))
		}
	}
	return a
}

// addArgument adds an argument and returns the parameter kinds that it fits.
func addArgument(a *cuda.Args, x any) (kinds string) {
	switch x := x.(type) {
	case cuda.Pointer:
		a.Pointer(x)
		return pointerKinds
	case int:
		a.Int32(int32(x))
		return "i"
	case bool:
		a.Int32(flag(x))
		return "i"
	case int64:
		a.Uint64(uint64(x))
		return "l"
	case uint64:
		a.Uint64(x)
		return "u"
	case float64:
		a.Float64(x)
		return "d"
	case []byte: // a struct of numbers, by value
		a.Bytes(x, 8)
		return "s"
	}
	panic(fmt.Sprintf("gpu: unsupported argument type %T", x))
}

// pointerKinds lists the parameter kinds that are addresses.
const pointerKinds = "TAPIDWS"

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// parameterKinds caches the kinds of each kernel's parameters, by kernel name.
var parameterKinds sync.Map

func kindsOf(name string) []string {
	if k, ok := parameterKinds.Load(name); ok {
		return k.([]string)
	}
	var out []string
	for _, p := range strings.Fields(Family(name).Params) {
		_, kind, _ := strings.Cut(p, ":")
		out = append(out, strings.TrimSuffix(kind, "?"))
	}
	parameterKinds.Store(name, out)
	return out
}
