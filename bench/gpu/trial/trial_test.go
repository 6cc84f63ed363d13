package trial

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels"
)

// Each trial has the arguments of its kernel, in types that the kernel has, and the sizes of values are those of the
// parameters.
func TestTrialsHaveTheKernelsArguments(t *testing.T) {
	for _, x := range All {
		for _, types := range []string{x.Types, x.Exact} {
			if types == "" {
				continue
			}
			l, err := x.Tiny().Launch(types)
			if err != nil {
				t.Errorf("%s of %s: %v", x.Kernel, types, err)
				continue
			}
			i := slices.IndexFunc(kernels.Table, func(k kernels.Kernel) bool { return k.Name == x.Kernel })
			k := kernels.Table[i]
			named := l.Function == x.Kernel+"_"+types && l.File == k.File
			if !slices.Contains(k.Types, types) || !named || l.Bytes <= 0 {
				t.Errorf("%s of %s: function %s in %s, %v bytes", x.Kernel, types, l.Function, l.File, l.Bytes)
			}
			for j, p := range strings.Fields(k.Params) {
				size := map[string]int{"i": 4, "l": 8, "u": 8, "d": 8}[p[strings.Index(p, ":")+1:]]
				if got := len(l.Args[j].Value); got != size {
					t.Errorf("%s of %s: %s is a value of %d bytes, want %d", x.Kernel, types, p, got, size)
				}
			}
			written := slices.ContainsFunc(l.Args, func(a Argument) bool { return a.Written() })
			if !written {
				t.Errorf("%s of %s writes nothing", x.Kernel, types)
			}
		}
	}
}

func TestUnknownKernelIsAnError(t *testing.T) {
	_, err := Trial{Kernel: "none", Rows: 1, Cols: 1}.Launch("f32")
	if err == nil || err.Error() != "unknown kernel none" {
		t.Errorf("%v, want unknown kernel none", err)
	}
}

// Numbers are read as stored, in each type.
func TestNumbersAreReadAsStored(t *testing.T) {
	v := Numbers(1000, 3)
	for _, types := range []string{"f64", "f32", "bf16"} {
		if b := Random(types, len(v), 3); len(b) != len(v)*ElemBytes(types) || RelativeError(Read(types, b), v) != 0 {
			t.Errorf("%s: %d bytes, error %g", types, len(b), RelativeError(Read(types, b), v))
		}
	}
}
