package codegen

import (
	"fmt"
	"math"

	"github.com/planc-dev/planc/ir"
)

// maxKernelSize is the largest number of rows or columns of a GPU kernel, whose parameters are 32-bit integers. Flat
// arrays have 64-bit sizes.
const maxKernelSize = math.MaxInt32

// sizeError is what [Target.kernelSize] panics with: a size that exceeds [maxKernelSize].
type sizeError struct {
	call string
	size int
}

// kernelSize returns an argument of a call. It panics if a GPU's kernel would get it truncated.
func (t Target) kernelSize(call string, n int) int {
	if t.gpu() && n > maxKernelSize {
		panic(sizeError{call, n})
	}
	return n
}

// returnSizeError turns the panic of [Target.kernelSize] into an error of the function that defers it.
func returnSizeError(p *ir.Program, err *error) {
	switch x := recover().(type) {
	case nil:
	case sizeError:
		*err = fmt.Errorf("codegen: %s has a size of %d, but a GPU kernel has at most %d rows or columns: %s", x.call,
			x.size, maxKernelSize, smallerSize(p, x.size))
	default:
		panic(x)
	}
}

// smallerSize says which settings bring a size within the limit. It grows with the tokens of a micro-batch.
func smallerSize(p *ir.Program, size int) string {
	seq := p.BatchInputs()[0].Type.Dims[1].Size
	if batch := p.Plan.MicroBatch; batch > 1 {
		return fmt.Sprintf("use a smaller micro_batch than %d or shorter sequences than %d tokens "+
			"(`--set plan.micro_batch=1`)", batch, seq)
	}
	fits := seq
	for perToken := (size + seq - 1) / seq; fits > 1 && perToken*fits > maxKernelSize; {
		fits /= 2
	}
	return fmt.Sprintf("use shorter sequences than %d tokens (`--set train.seq_len=%d`)", seq, fits)
}
