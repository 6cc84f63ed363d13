//go:build cuda && linux

package gpu

import (
	"fmt"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	rt "github.com/planc-dev/planc/runtime"
)

// Fused is a fused group of ops: a kernel that was printed for this program.
type Fused struct {
	Kernel  string
	Rowwise bool // the group sums over rows
}

// Operand is an operand of a fused group: a Buf, or, for operands that are no floating-point numbers, IDs
// or Limit.
type Operand interface {
	pack(d *device, a *cuda.Args)
}

func (b Buf[T]) pack(d *device, a *cuda.Args) { a.Pointer(d.ptr(b.At)) }

type idsOperand struct {
	ids   Buf[int32]
	lo, n int
}

// IDs is an operand that holds each row's index into n columns, which start at lo.
func IDs(ids Buf[int32], lo, n int) Operand { return idsOperand{ids, lo, n} }

func (o idsOperand) pack(d *device, a *cuda.Args) {
	a.Pointer(d.ptr(o.ids.At)).Int32(int32(o.lo)).Int32(int32(o.n))
}

type limit int

// Limit is an operand that holds the number of valid columns of a row.
func Limit(n int) Operand { return limit(n) }

func (o limit) pack(_ *device, a *cuda.Args) { a.Int32(int32(o)) }

// Chain runs a fused group over rows × cols elements.
func Chain(r *rt.Rank, f Fused, rows, cols int, operands ...Operand) {
	d := deviceOf(r)
	a := d.args()
	for _, o := range operands {
		o.pack(d, a)
	}
	shape := kernels.Wide
	if f.Rowwise {
		shape = kernels.Rowwise
	}
	if int(int32(rows)) != rows || int(int32(cols)) != cols {
		panic(fmt.Sprintf("gpu: %s has %d rows of %d columns, which exceed 32 bits", f.Kernel, rows, cols))
	}
	d.launch(f.Kernel, shape(rows, cols), a.Int32(int32(rows)).Int32(int32(cols)))
}
