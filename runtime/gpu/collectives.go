//go:build cuda && linux

package gpu

import (
	"encoding/binary"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/comm"
	"github.com/planc-dev/planc/runtime/num"
)

// The collectives of a block run on the compute stream in the program's order, which is the same on all
// ranks. NCCL moves contiguous parts. If the split dim is not the first one, there is a collective for each
// of the rows before it. If there are more than groupedRows, kernels pack and unpack the parts instead.

// groupedRows is the maximum number of rows with a collective each: the sequences of a micro-batch, and not its
// tokens. NCCL runs them as one kernel.
const groupedRows = 16

// wireType returns the NCCL data type of a buffer's elements.
func wireType[T num.Stored | int32]() cuda.Type {
	return map[string]cuda.Type{"f32": cuda.Float32, "f64": cuda.Float64, "bf16": cuda.BFloat16, "f16": cuda.Float16,
		"i32": cuda.Int32}[suffix[T]()]
}

// AllReduce reduces the members' x with op, and writes the result to y on every member.
func AllReduce[T num.Stored](r *rt.Rank, group int, y, x Buf[T], op rt.Op) {
	d := deviceOf(r)
	c := d.group(group)
	switch {
	case c == nil:
		Copy(r, y, x)
	case op == rt.LSE:
		d.logSumExp(c, suffix[T](), addr(d, y), addr(d, x), x.N, size[T](), wireType[T]())
	default:
		how := map[rt.Op]cuda.Reduction{rt.Sum: cuda.Sum, rt.Max: cuda.Max}[op]
		rt.Check(c.AllReduce(d.stream(), addr(d, y), addr(d, x), x.N, wireType[T](), how))
	}
}

// logSumExp reduces n numbers of each member with log-sum-exp. NCCL does not have this reduction, so all
// numbers are gathered on each member.
func (d *communication) logSumExp(c *comm.Comm, types string, y, x cuda.Pointer, n, size int, wire cuda.Type) {
	all := d.own(gatherBufferKey{c, n * size}, c.Ranks*n*size)
	rt.Check(c.AllGather(d.stream(), all, x, n, wire))
	members := d.constant(all, func() (b []byte) {
		for i := range c.Ranks {
			b = binary.NativeEndian.AppendUint64(b, uint64(all)+uint64(i*n*size))
		}
		return b
	})
	d.call("all_reduce_lse", types, 1, n, members, c.Ranks, int64(0), int64(n))
	rt.Check(d.stream().Copy(cuda.Memory{Pointer: y, Bytes: int64(n * size)}, cuda.Memory{Pointer: all,
		Bytes: int64(n * size)}))
}

// gatherBufferKey identifies the memory for an all-gather by its group and the bytes of one member.
type gatherBufferKey struct {
	c     *comm.Comm
	bytes int
}

// AllGather fills outer rows of y, each of total elements, from the members' rows of x, each of inner elements. Part i
// becomes columns [i*inner, min((i+1)*inner, total)).
func AllGather[T num.Stored | int32](r *rt.Rank, group int, y, x Buf[T], outer, inner, total int) {
	allGather(r, group, y, x, outer, inner, total, 0)
}

// AllGatherZigzag is AllGather of a dim that is split in the zigzag order of n parts.
func AllGatherZigzag[T num.Stored | int32](r *rt.Rank, group int, y, x Buf[T], outer, inner, total, n int) {
	allGather(r, group, y, x, outer, inner, total, n)
}

func allGather[T num.Stored | int32](r *rt.Rank, group int, y, x Buf[T], outer, inner, total, zigzagParts int) {
	d := deviceOf(r)
	c := d.group(group)
	n, from := members(c), addr(d, x)
	switch {
	case c == nil && zigzagParts == 0 && inner == total:
		Copy(r, y, x)
		return
	case c != nil && zigzagParts == 0 && n*inner == total && outer <= groupedRows:
		rt.Check(c.Rows(outer, func(i int) error {
			return c.AllGather(d.stream(), addr(d, y)+pointer(i*total*size[T]()), from+pointer(i*inner*size[T]()),
				inner, wireType[T]())
		}))
		return
	case c != nil:
		from = d.scratch(n * x.N * size[T]())
		rt.Check(c.AllGather(d.stream(), from, addr(d, x), x.N, wireType[T]()))
	}
	d.unpack(suffix[T](), addr(d, y), from, outer, n, inner, total, zigzagParts)
}

// unpack copies the members' parts [n, outer, inner] to rows [outer, total]. The rows are in the zigzag order of
// zigzagParts parts; 0 means contiguous.
func (d *executor) unpack(types string, to, from cuda.Pointer, outer, n, inner, total, zigzagParts int) {
	d.call("gather", types, n*outer, inner, to, from, outer, n, inner, total, zigzagParts)
}

// pack copies count parts of the rows [outer, total], starting at part index first, to contiguous memory. The rows are
// in the zigzag order of zigzagParts parts; 0 means contiguous.
func (d *executor) pack(types string, to, from cuda.Pointer, outer, first, count, inner, total, zigzagParts int) {
	d.call("scatter", types, count*outer, inner, to, from, outer, first, count, inner, total, zigzagParts)
}

// members returns the number of ranks of a group.
func members(c *comm.Comm) int {
	if c == nil {
		return 1
	}
	return c.Ranks
}

// ReduceScatter sums the members' x. Each of its outer rows has inner columns per member, and this rank receives its
// own columns in y: y[o,j] = Σ_i x_i[o, me*inner+j].
func ReduceScatter[T num.Stored](r *rt.Rank, group int, y, x Buf[T], outer, inner int) {
	reduceScatter(r, group, y, x, outer, inner, 0)
}

// ReduceScatterZigzag is ReduceScatter onto parts in the zigzag order of n parts.
func ReduceScatterZigzag[T num.Stored](r *rt.Rank, group int, y, x Buf[T], outer, inner, n int) {
	reduceScatter(r, group, y, x, outer, inner, n)
}

func reduceScatter[T num.Stored](r *rt.Rank, group int, y, x Buf[T], outer, inner, zigzagParts int) {
	d := deviceOf(r)
	c := d.group(group)
	if c == nil {
		d.pack(suffix[T](), addr(d, y), addr(d, x), outer, 0, 1, inner, inner, zigzagParts)
		return
	}
	from := addr(d, x)
	if zigzagParts == 0 && outer <= groupedRows {
		rt.Check(c.Rows(outer, func(i int) error {
			at := i * inner * size[T]()
			return c.ReduceScatter(d.stream(), addr(d, y)+pointer(at), from+pointer(c.Ranks*at), inner, wireType[T]())
		}))
		return
	}
	packed := d.scratch(x.N * size[T]())
	d.pack(suffix[T](), packed, from, outer, 0, c.Ranks, inner, c.Ranks*inner, zigzagParts)
	rt.Check(c.ReduceScatter(d.stream(), addr(d, y), packed, y.N, wireType[T]()))
}

// Slice copies this rank's columns of x: y[o,j] = x[o, me*inner+j] for each of outer rows. It does not communicate.
func Slice[T num.Stored | int32](r *rt.Rank, group int, y, x Buf[T], outer, inner int) {
	SliceZigzag(r, group, y, x, outer, inner, 0)
}

// SliceZigzag is Slice in the zigzag order of n parts.
func SliceZigzag[T num.Stored | int32](r *rt.Rank, group int, y, x Buf[T], outer, inner, n int) {
	d := deviceOf(r)
	d.pack(suffix[T](), addr(d, y), addr(d, x), outer, rt.Index(r, group), 1, inner, members(d.group(group))*inner, n)
}
