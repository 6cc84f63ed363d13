package rank

import (
	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/tensors"
)

// place copies the rank's rows of a batch of micro micro-batches into its arena.
func place[F tensors.Float](r *Rank, b *feed.Batch, micro int) {
	l, in := &r.Program.Batch, &r.Stage.Inputs
	replica, n := r.Replica(), len(b.Unmasked)
	elem := r.Program.Elem.Size()
	for m := range micro {
		for j := range l.MicroBatch {
			i := (m*l.Replicas+replica)*l.MicroBatch + j
			if l.Documents {
				placeBorders(r, m*l.MicroBatch+j, feed.RowOf(b.Documents, i, n))
			}
			eachRun(r, m*l.MicroBatch+j, func(at, from, width int) {
				if in.Tokens > 0 {
					copy(tensors.View[int32](&r.Store, in.Tokens+at*4, width), feed.RowOf(b.Tokens, i, n)[from:])
				}
				if in.Types > 0 {
					copy(tensors.View[int32](&r.Store, in.Types+at*4, width), feed.RowOf(b.Types, i, n)[from:])
				}
				if in.Pixels > 0 {
					compute := r.Program.TensorTypes().Compute
					tensors.Write(&r.Store, compute, in.Pixels+at*l.Patch*compute.Size(),
						feed.RowOf(b.Pixels, i, n)[from*l.Patch:(from+width)*l.Patch])
				}
				placeLabels(tensors.View[int32](&r.Store, in.Labels+at*4, width), tensors.View[F](&r.Store,
					in.Mask+at*elem, width), feed.RowOf(b.Labels, i, n)[from:from+width])
			})
		}
	}
}

// placeBorders writes the borders of the documents of the rank's row number row, given the number of each position's
// document. It writes whole rows, whatever part of a row the rank has.
func placeBorders(r *Rank, row int, documents []int32) {
	n, in := len(documents), &r.Stage.Inputs
	starts := tensors.View[int32](&r.Store, in.Starts+row*n*4, n)
	for k := range starts {
		starts[k] = int32(k)
		if k > 0 && documents[k] == documents[k-1] {
			starts[k] = starts[k-1]
		}
	}
	if in.Ends == 0 {
		return
	}
	ends := tensors.View[int32](&r.Store, in.Ends+row*n*4, n)
	for k := n - 1; k >= 0; k-- {
		ends[k] = int32(k + 1)
		if k+1 < n && documents[k] == documents[k+1] {
			ends[k] = ends[k+1]
		}
	}
}

// eachRun calls f for each contiguous range of positions that the rank has of its row number row: its index in the
// rank's own rows, its start in the whole row, and its length.
func eachRun(r *Rank, row int, f func(at, from, width int)) {
	l := &r.Program.Batch
	part, parts := r.Program.Along(r.Coord, l.SeqAxes)
	at := row * l.SeqLen / parts
	comm.Parts(part, parts, l.SeqLen, l.Zigzag, func(from, width int) {
		f(at, from, width)
		at += width
	})
}

// seqLen returns the number of positions of a row that the rank has.
func seqLen(r *Rank) int {
	_, parts := r.Program.Along(r.Coord, r.Program.Batch.SeqAxes)
	return r.Program.Batch.SeqLen / parts
}

// placeLabels splits labels into labels from 0 up and a mask of those that count.
func placeLabels[F tensors.Float](labels []int32, mask []F, from []int32) {
	for k, label := range from {
		labels[k], mask[k] = max(label, 0), 0
		if label >= 0 {
			mask[k] = 1
		}
	}
}

// Replica returns the rank's number among the replicas.
func (r *Rank) Replica() int {
	n, _ := r.Program.Along(r.Coord, r.Program.Batch.ReplicaAxes)
	return n
}
