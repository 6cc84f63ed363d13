package feed

import (
	"sync"

	"github.com/planc-dev/planc/runtime/program"
)

// Batch is a range of samples in host memory, in the order of the global batch.
type Batch struct {
	Tokens, Labels []int32
	Types          []int32   // nil if the model reads none
	Pixels         []float32 // nil if the model reads none
	Documents      []int32   // number of each position's document; nil if the model does not read their borders
	Unmasked       []int     // positions that count, per sample; the label of all others is -1
	Err            error
}

// NewBatch returns an empty batch of samples.
func NewBatch(samples int, l *program.BatchLayout) *Batch {
	b := &Batch{
		Tokens:   make([]int32, samples*l.SeqLen),
		Labels:   make([]int32, samples*l.SeqLen),
		Unmasked: make([]int, samples),
	}
	if l.Types {
		b.Types = make([]int32, samples*l.SeqLen)
	}
	if l.Documents {
		b.Documents = make([]int32, samples*l.SeqLen)
	}
	if l.Patch > 0 {
		b.Pixels = make([]float32, samples*l.SeqLen*l.Patch)
	}
	return b
}

// RowOf returns row i of the n rows of x.
func RowOf[T any](x []T, i, n int) []T {
	width := len(x) / n
	return x[i*width : (i+1)*width]
}

// Read fills the batch with the samples from first, atOnce of them concurrently. Samples from end on are fully masked.
func (b *Batch) Read(from Reader, first, end int64, atOnce int) {
	if atOnce <= 1 {
		_, b.Err = b.rows(from, first, end, 0, 1)
		return
	}
	var all sync.WaitGroup
	rows, errs := make([]int, atOnce), make([]error, atOnce)
	for k := range atOnce {
		all.Go(func() { rows[k], errs[k] = b.rows(from, first, end, k, atOnce) })
	}
	all.Wait()
	b.Err = nil
	worst := len(b.Unmasked)
	for k, err := range errs { // report the error of the first row
		if err != nil && rows[k] < worst {
			worst, b.Err = rows[k], err
		}
	}
}

// rows fills every step-th row from row i. If it fails, it returns the row that failed.
func (b *Batch) rows(from Reader, first, end int64, i, step int) (row int, err error) {
	defer recovered(first, &err)
	for row = i; row < len(b.Unmasked); row += step {
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
func (b *Batch) blank(i int) {
	n := len(b.Unmasked)
	clear(RowOf(b.Tokens, i, n))
	clear(RowOf(b.Types, i, n))
	clear(RowOf(b.Pixels, i, n))
	clear(RowOf(b.Documents, i, n))
	b.Unmasked[i] = mask(RowOf(b.Labels, i, n), 0)
}

// sample reads sample g into row i.
func (b *Batch) sample(from Reader, i int, g int64) error {
	n := len(b.Unmasked)
	labels := RowOf(b.Labels, i, n)
	counted, err := from.sample(g, RowOf(b.Tokens, i, n), labels)
	if err == nil && from.types != nil {
		err = from.types(g, RowOf(b.Types, i, n))
	}
	if err == nil && from.pixels != nil {
		row := RowOf(b.Pixels, i, n)
		err = from.pixels(g, row)
		clear(row[:len(row)/len(labels)]) // the class token is no patch
	}
	if err == nil && from.documents != nil {
		row := RowOf(b.Documents, i, n)
		err = from.documents(g, row)
		if err == nil {
			err = from.checkDocuments(g, row)
		}
	}
	if err == nil {
		err = from.check(g, RowOf(b.Tokens, i, n), labels, counted)
	}
	if err == nil {
		b.Unmasked[i] = mask(labels, counted)
	}
	return err
}

// Counted returns the number of positions of the batch that count.
func (b *Batch) Counted() (n int) {
	for _, u := range b.Unmasked {
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
