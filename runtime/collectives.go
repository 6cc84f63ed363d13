package runtime

import (
	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/tensors"
)

// Op is the operation that AllReduce applies to the elements of a group.
type Op = comm.Op

const (
	Sum = comm.Sum
	Max = comm.Max
	LSE = comm.LSE // log of the sum of exponentials
)

// Call is one rank's part in a communication between ranks.
type Call = comm.Call

// AllReduce reduces buf over a group in place, in the members' order. Group -1 is the rank alone.
func AllReduce[F num.Stored](r *rank.Rank, group int, buf []F, op Op) {
	rank.AllReduce(r, group, buf, op)
}

// AllGather fills rows of dst, total wide, from the members' rows of src, inner wide. Part i becomes columns
// [i*inner, min((i+1)*inner, total)) of each of outer rows.
func AllGather[F comm.Elem](r *rank.Rank, group int, dst, src []F, outer, inner, total int) {
	rank.Check(comm.AllGather(r.CommGroup(group), dst, src, outer, inner, total))
}

// ReduceScatter sets dst[o,j] = Σ_i src_i[o, me*inner+j], summed in the members' order.
func ReduceScatter[F num.Stored](r *rank.Rank, group int, dst, src []F, outer, inner int) {
	rank.Check(comm.ReduceScatter(r.CommGroup(group), dst, src, outer, inner))
}

// Slice sets dst[o,j] = src[o, me*inner+j]. It does not communicate.
func Slice[T any](r *rank.Rank, group int, dst, src []T, outer, inner int) {
	comm.Slice(r.CommGroup(group), dst, src, outer, inner)
}

// AllToAllShape is the shape of an AllToAll.
type AllToAllShape = comm.AllToAllShape

// AllToAll gathers the dim that was split over a group and splits another one; see [comm.AllToAll].
func AllToAll[F num.Stored](r *rank.Rank, group int, dst, src []F, t AllToAllShape) {
	rank.Check(comm.AllToAll(r.CommGroup(group), dst, src, t))
}

// Shift fills dst with the src of the member that is by positions before this one; see [comm.Shift].
func Shift[F num.Stored](r *rank.Rank, group int, dst, src []F, by int) {
	rank.Check(comm.Shift(r.CommGroup(group), dst, src, by))
}

// AllGatherZigzag is AllGather of a dim in the zigzag order of n parts; see [comm.AllGatherZigzag].
func AllGatherZigzag[F comm.Elem](r *rank.Rank, group int, dst, src []F, outer, inner, total, n int) {
	rank.Check(comm.AllGatherZigzag(r.CommGroup(group), dst, src, outer, inner, total, n))
}

// ReduceScatterZigzag is ReduceScatter onto the parts of the zigzag order of n parts.
func ReduceScatterZigzag[F num.Stored](r *rank.Rank, group int, dst, src []F, outer, inner, n int) {
	rank.Check(comm.ReduceScatterZigzag(r.CommGroup(group), dst, src, outer, inner, n))
}

// SliceZigzag is Slice in the zigzag order of n parts.
func SliceZigzag[T any](r *rank.Rank, group int, dst, src []T, outer, inner, n int) {
	comm.SliceZigzag(r.CommGroup(group), dst, src, outer, inner, n)
}

// Index returns the rank's index in a group.
func Index(r *rank.Rank, group int) int {
	if group < 0 {
		return 0
	}
	return r.CommGroup(group).Index()
}

// Zero sets buf to zero.
func Zero[F tensors.Float](buf []F) { clear(buf) }
