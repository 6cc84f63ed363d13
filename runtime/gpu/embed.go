//go:build cuda && linux

package gpu

import (
	"slices"
	"unsafe"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// Embed copies rows of an embedding table.
func Embed[Y, T num.Stored](r *rt.Rank, y Buf[Y], table Buf[T], ids Buf[int32], cols, lo, n int) {
	d := deviceOf(r)
	d.call("embed", suffix[Y]()+"_"+suffix[T](), ids.N, cols, addr(d, y), addr(d, table), addr(d, ids), ids.N,
		cols, lo, n)
}

// Iota numbers the elements of a rank's part of a dim, starting at offset. Numbers are capped at most
// unless that is 0.
func Iota(r *rt.Rank, ids Buf[int32], where cpu.Where, offset, limit int) {
	d := deviceOf(r)
	d.iotas[ids.At] = iota32{where, offset, limit}
	d.call("iota", "i32", 1, ids.N, addr(d, ids), where.At, where.Half, where.Then, offset, limit, int64(ids.N))
}

// iota32 holds the parameters of a call of Iota.
type iota32 struct {
	where         cpu.Where
	offset, limit int
}

// fill computes Iota on the host.
func (x iota32) fill(ids []int32) {
	rt.Iota(ids, x.where, x.offset)
	if x.limit != 0 {
		rt.CapIDs(ids, x.limit)
	}
}

// EmbedGrad adds the rows dy to the gradient of an embedding table. If acc is false, the gradient is set to zero first.
func EmbedGrad[G, T num.Stored](r *rt.Rank, dtable Buf[G], dy Buf[T], ids Buf[int32], cols, lo, n int, acc bool) {
	EmbedGradBut(r, dtable, dy, ids, noID, cols, lo, n, acc)
}

// noID is an id that no token has.
const noID = -1

// EmbedGradBut computes EmbedGrad except for the row of the id but.
func EmbedGradBut[G, T num.Stored](r *rt.Rank, dtable Buf[G], dy Buf[T], ids Buf[int32],
	but, cols, lo, n int, acc bool) {
	d := deviceOf(r)
	if !acc {
		d.Clear(dtable.At, dtable.N*size[G]())
	}
	s := d.sorted(ids, but, lo, n)
	capacity := min(ids.N, n)
	d.call("embed_grad", suffix[G]()+"_"+suffix[T](), capacity, cols, addr(d, dtable), addr(d, dy), s, s+4,
		s+cuda.Pointer(4*(1+capacity)), s+cuda.Pointer(4*(2+2*capacity)), cols)
}

// sortedIDs identifies ids that were sorted for a part of a table: those of the batch at an offset of the
// arena, or those that an Iota wrote.
type sortedIDs struct {
	at, count, but, lo, n int
	iota                  iota32
}

// sorted returns the device address of kernels.Buckets of the ids: the number of rows, the rows, where they
// start, and the order. The host computes them, again for each batch if the ids belong to the batch.
func (d *inputFeeds) sorted(ids Buf[int32], but, lo, n int) cuda.Pointer {
	key := sortedIDs{at: ids.At, count: ids.N, but: but, lo: lo, n: n}
	batch := d.exec.rank.Stage.Arena.Batch
	if ids.At >= batch.Offset && ids.end() <= batch.Offset+batch.Size {
		if p, ok := d.exec.constants[key]; ok {
			return p
		}
		p := d.feed(4*(2+2*min(ids.N, n)+ids.N), func(to []byte) {
			sortInto(to, rt.View[int32](d.exec.rank, ids.At, ids.N), but, lo, n)
		})
		d.exec.constants[key] = p
		return p
	}
	made, ok := d.iotas[ids.At]
	if !ok {
		panic("gpu: EmbedGrad supports only ids of the batch or of Iota")
	}
	key.at, key.iota = -1, made
	return d.exec.constant(key, func() []byte {
		host := make([]int32, ids.N)
		made.fill(host)
		to := make([]byte, 4*(2+2*min(ids.N, n)+ids.N))
		sortInto(to, host, but, lo, n)
		return to
	})
}

// sortInto writes the buckets of all ids except one to to.
func sortInto(to []byte, ids []int32, but, lo, n int) {
	if but != noID {
		ids = slices.Clone(ids)
		for i, id := range ids {
			if int(id) == but {
				ids[i] = noID
			}
		}
	}
	all := unsafe.Slice((*int32)(unsafe.Pointer(&to[0])), len(to)/4)
	capacity := min(len(ids), n)
	rows, starts, order := kernels.Buckets(ids, lo, n)
	all[0] = int32(len(rows))
	copy(all[1:], rows)
	copy(all[1+capacity:], starts)
	copy(all[2+2*capacity:], order)
}
