//go:build cuda && linux

package gpu

import (
	"encoding/binary"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/num"
)

// Collectives of a block are put on the compute stream, in the program's order, which is the same on all ranks. NCCL
// moves members' parts that lie behind each other; where a dim is split that is not the first, kernels bring them there
// and back.

// wireType is the type of a buffer's elements as NCCL numbers it.
func wireType[T num.Stored | int32]() cuda.Type {
	return map[string]cuda.Type{"f32": cuda.Float32, "f64": cuda.Float64, "bf16": cuda.BFloat16, "f16": cuda.Float16,
		"i32": cuda.Int32}[suffix[T]()]
}

// AllReduce leaves in y, on every member, the members' x joined by op.
func AllReduce[T num.Stored](r *rt.Rank, group int, y, x Buf[T], op rt.Op) {
	d := of(r)
	c := d.group(group)
	switch {
	case c == nil:
		Copy(r, y, x)
	case op == rt.LSE:
		d.logSumExp(c, suffix[T](), at(d, y), at(d, x), x.N, size[T](), wireType[T]())
	default:
		how := map[rt.Op]cuda.Reduction{rt.Sum: cuda.Sum, rt.Max: cuda.Max}[op]
		rt.Check(c.AllReduce(d.stream(), at(d, y), at(d, x), x.N, wireType[T](), how))
	}
}

// logSumExp joins n numbers of each member, which NCCL does not know how to: all of them are brought to each.
func (d *device) logSumExp(c *comm, types string, y, x cuda.Pointer, n, size int, wire cuda.Type) {
	all := d.own(gathered{c, n * size}, c.Ranks*n*size)
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

// gathered says what a member of a group brings to all, in bytes.
type gathered struct {
	c     *comm
	bytes int
}

// AllGather is the runtime's.
func AllGather[T num.Stored | int32](r *rt.Rank, group int, y, x Buf[T], outer, inner, total int) {
	allGather(r, group, y, x, outer, inner, total, 0)
}

// AllGatherZigzag is AllGather of a dim in the zigzag order of n parts.
func AllGatherZigzag[T num.Stored | int32](r *rt.Rank, group int, y, x Buf[T], outer, inner, total, n int) {
	allGather(r, group, y, x, outer, inner, total, n)
}

func allGather[T num.Stored | int32](r *rt.Rank, group int, y, x Buf[T], outer, inner, total, zigzag int) {
	d := of(r)
	c := d.group(group)
	n, from := members(c), at(d, x)
	if zigzag == 0 && n*inner == total && (outer == 1 || n == 1) {
		d.gatherTo(c, at(d, y), from, x.N, wireType[T](), func() { Copy(r, y, x) })
		return
	}
	if c != nil {
		from = d.scratch(n * x.N * size[T]())
		rt.Check(c.AllGather(d.stream(), from, at(d, x), x.N, wireType[T]()))
	}
	d.unpack(suffix[T](), at(d, y), from, outer, n, inner, total, zigzag)
}

// gatherTo is NCCL's all-gather, or alone for a rank alone.
func (d *device) gatherTo(c *comm, to, from cuda.Pointer, n int, t cuda.Type, alone func()) {
	if c == nil {
		alone()
		return
	}
	rt.Check(c.AllGather(d.stream(), to, from, n, t))
}

// unpack brings members' parts [n, outer, inner] to rows [outer, total].
func (d *device) unpack(types string, to, from cuda.Pointer, outer, n, inner, total, zigzag int) {
	d.call("gather", types, n*outer, inner, to, from, outer, n, inner, total, zigzag)
}

// pack brings count parts from number first on of rows [outer, total] behind each other.
func (d *device) pack(types string, to, from cuda.Pointer, outer, first, count, inner, total, zigzag int) {
	d.call("scatter", types, count*outer, inner, to, from, outer, first, count, inner, total, zigzag)
}

// members is how many ranks a group has.
func members(c *comm) int {
	if c == nil {
		return 1
	}
	return c.Ranks
}

// ReduceScatter is the runtime's.
func ReduceScatter[T num.Stored](r *rt.Rank, group int, y, x Buf[T], outer, inner int) {
	reduceScatter(r, group, y, x, outer, inner, 0)
}

// ReduceScatterZigzag is ReduceScatter onto parts of the zigzag order of n parts.
func ReduceScatterZigzag[T num.Stored](r *rt.Rank, group int, y, x Buf[T], outer, inner, n int) {
	reduceScatter(r, group, y, x, outer, inner, n)
}

func reduceScatter[T num.Stored](r *rt.Rank, group int, y, x Buf[T], outer, inner, zigzag int) {
	d := of(r)
	c := d.group(group)
	if c == nil {
		d.pack(suffix[T](), at(d, y), at(d, x), outer, 0, 1, inner, inner, zigzag)
		return
	}
	from := at(d, x)
	if outer > 1 || zigzag > 0 {
		from = d.scratch(x.N * size[T]())
		d.pack(suffix[T](), from, at(d, x), outer, 0, c.Ranks, inner, c.Ranks*inner, zigzag)
	}
	rt.Check(c.ReduceScatter(d.stream(), at(d, y), from, y.N, wireType[T]()))
}

// Slice is the runtime's.
func Slice[T num.Stored | int32](r *rt.Rank, group int, y, x Buf[T], outer, inner int) {
	SliceZigzag(r, group, y, x, outer, inner, 0)
}

// SliceZigzag is Slice of the zigzag order of n parts.
func SliceZigzag[T num.Stored | int32](r *rt.Rank, group int, y, x Buf[T], outer, inner, n int) {
	d := of(r)
	d.pack(suffix[T](), at(d, y), at(d, x), outer, rt.Index(r, group), 1, inner, members(d.group(group))*inner, n)
}
