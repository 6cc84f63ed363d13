package codegen

import (
	"io"

	"github.com/planc-dev/planc/codegen/cu"
	"github.com/planc-dev/planc/ir"
)

// CUDA writes the kernels of a program's fused ops as CUDA C++: chain1, chain2 and so on. [Go] launches them by these
// names if the target is a GPU. It fails if an op has no kernel yet.
func CUDA(w io.Writer, in Input) (err error) {
	defer returnSizeError(in.Program, &err)
	if err := supported(in.Program); err != nil {
		return err
	}
	_, used := functions(in.Program, GPU)
	return cu.Print(w, arithmetic(in.Program) == ir.F64, used.cuChains())
}
