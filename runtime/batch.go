package runtime

import (
	"errors"
	"sync"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/data"
	"github.com/planc-dev/planc/runtime/exit"
)

// batch is a range of samples in host memory, in the order of the global batch.
type batch struct {
	tokens, labels []int32
	types          []int32   // nil if the model reads none
	pixels         []float32 // nil if the model reads none
	unmasked       []int     // positions that count, per sample; the label of all others is -1
	err            error
}

func newBatch(samples int, l *BatchLayout) *batch {
	b := &batch{
		tokens:   make([]int32, samples*l.SeqLen),
		labels:   make([]int32, samples*l.SeqLen),
		unmasked: make([]int, samples),
	}
	if l.Types {
		b.types = make([]int32, samples*l.SeqLen)
	}
	if l.Patch > 0 {
		b.pixels = make([]float32, samples*l.SeqLen*l.Patch)
	}
	return b
}

// rowOf returns row i of the n rows of x.
func rowOf[T any](x []T, i, n int) []T {
	width := len(x) / n
	return x[i*width : (i+1)*width]
}

// read fills the batch with the samples from first, atOnce of them concurrently. Samples from end on are fully masked.
func (b *batch) read(from reader, first, end int64, atOnce int) {
	if atOnce <= 1 {
		_, b.err = b.rows(from, first, end, 0, 1)
		return
	}
	var all sync.WaitGroup
	rows, errs := make([]int, atOnce), make([]error, atOnce)
	for k := range atOnce {
		all.Go(func() { rows[k], errs[k] = b.rows(from, first, end, k, atOnce) })
	}
	all.Wait()
	b.err = nil
	worst := len(b.unmasked)
	for k, err := range errs { // report the error of the first row
		if err != nil && rows[k] < worst {
			worst, b.err = rows[k], err
		}
	}
}

// rows fills every step-th row from row i. If it fails, it returns the row that failed.
func (b *batch) rows(from reader, first, end int64, i, step int) (row int, err error) {
	defer recovered(first, &err)
	for row = i; row < len(b.unmasked); row += step {
		if g := first + int64(row); g >= end {
			b.blank(row)
		} else {
			err = b.sample(from, row, g)
			if err != nil {
				return row, err
			}
		}
	}
	return row, nil
}

// blank makes row i empty: none of its positions counts.
func (b *batch) blank(i int) {
	n := len(b.unmasked)
	clear(rowOf(b.tokens, i, n))
	clear(rowOf(b.types, i, n))
	clear(rowOf(b.pixels, i, n))
	b.unmasked[i] = mask(rowOf(b.labels, i, n), 0)
}

// sample reads sample g into row i.
func (b *batch) sample(from reader, i int, g int64) error {
	n := len(b.unmasked)
	labels := rowOf(b.labels, i, n)
	counted, err := from.sample(g, rowOf(b.tokens, i, n), labels)
	if err == nil && from.types != nil {
		err = from.types(g, rowOf(b.types, i, n))
	}
	if err == nil && from.pixels != nil {
		row := rowOf(b.pixels, i, n)
		err = from.pixels(g, row)
		clear(row[:len(row)/len(labels)]) // the class token is no patch
	}
	if err == nil {
		err = from.check(g, rowOf(b.tokens, i, n), labels, counted)
	}
	if err == nil {
		b.unmasked[i] = mask(labels, counted)
	}
	return err
}

// counted returns the number of positions of the batch that count.
func (b *batch) counted() (n int) {
	for _, u := range b.unmasked {
		n += u
	}
	return n
}

// mask sets the labels that do not count to -1: those from n on, and the negative ones. It returns the number of
// others.
func mask(labels []int32, n int) (counted int) {
	for k := range labels {
		if k < n && labels[k] >= 0 {
			counted++
		} else {
			labels[k] = -1
		}
	}
	return counted
}

// place copies the rank's rows of a batch of micro micro-batches into its arena.
func place[F Float](r *Rank, b *batch, micro int) {
	l, in := &r.Program.Batch, &r.Stage.Inputs
	replica, n := r.replica(), len(b.unmasked)
	elem := r.Program.Elem.Size()
	for m := range micro {
		for j := range l.MicroBatch {
			i := (m*l.Replicas+replica)*l.MicroBatch + j
			r.eachRun(m*l.MicroBatch+j, func(at, from, width int) {
				if in.Tokens > 0 {
					copy(View[int32](r, in.Tokens+at*4, width), rowOf(b.tokens, i, n)[from:])
				}
				if in.Types > 0 {
					copy(View[int32](r, in.Types+at*4, width), rowOf(b.types, i, n)[from:])
				}
				if in.Pixels > 0 {
					compute := r.Program.TensorTypes().Compute
					write(r, compute, in.Pixels+at*l.Patch*compute.Size(),
						rowOf(b.pixels, i, n)[from*l.Patch:(from+width)*l.Patch])
				}
				placeLabels(View[int32](r, in.Labels+at*4, width), View[F](r, in.Mask+at*elem, width),
					rowOf(b.labels, i, n)[from:from+width])
			})
		}
	}
}

// eachRun calls f for each contiguous range of positions that the rank has of its row number row: its index in the
// rank's own rows, its start in the whole row, and its length.
func (r *Rank) eachRun(row int, f func(at, from, width int)) {
	l := &r.Program.Batch
	part, parts := r.along(l.SeqAxes)
	at := row * l.SeqLen / parts
	comm.Parts(part, parts, l.SeqLen, l.Zigzag, func(from, width int) {
		f(at, from, width)
		at += width
	})
}

// seqLen returns the number of positions of a row that the rank has.
func (r *Rank) seqLen() int {
	_, parts := r.along(r.Program.Batch.SeqAxes)
	return r.Program.Batch.SeqLen / parts
}

// placeLabels splits labels into labels from 0 up and a mask of those that count.
func placeLabels[F Float](labels []int32, mask []F, from []int32) {
	for k, label := range from {
		labels[k], mask[k] = max(label, 0), 0
		if label >= 0 {
			mask[k] = 1
		}
	}
}

// replica returns the rank's number among the replicas.
func (r *Rank) replica() int {
	n, _ := r.along(r.Program.Batch.ReplicaAxes)
	return n
}

// along returns the rank's number along axes, the fastest first, and the number of ranks along them.
func (r *Rank) along(axes []string) (n, radix int) {
	radix = 1
	for _, a := range axes {
		n += r.Coord[a] * radix
		radix *= r.Program.AxisSize(a)
	}
	return n, radix
}

// openData opens the job's files.
func openData(p *Program, s *Settings, notice func(string)) (*data.Set, error) {
	spec := data.Spec{
		Notice:        notice,
		ValidFraction: s.Data.ValidFraction, Root: s.Data.Root, Dir: s.Dir, Tokenizer: s.Data.Tokenizer,
		SeqLen: p.Batch.SeqLen, Vocab: p.Model.Vocab, Seed: s.Train.Seed,
	}
	for _, f := range s.Data.Train {
		spec.Train = append(spec.Train, data.Source{Path: f.Path, Weight: weight(f)})
	}
	for _, f := range s.Data.Valid {
		spec.Valid = append(spec.Valid, data.Source{Path: f.Path, Weight: weight(f)})
	}
	return data.Open(spec)
}

// weight returns the file's weight, or 1 if it has none.
func weight(f File) float64 {
	if f.Weight == 0 {
		return 1
	}
	return f.Weight
}

// dataCode returns the exit code of an error of the data. Changed files count as wrong input, because a restarted run
// would train on their new content.
func dataCode(err error) int {
	var bad *data.InputError
	var changed *data.ChangedError
	if errors.As(err, &bad) || errors.As(err, &changed) {
		return exit.Input
	}
	return exit.Failed
}
