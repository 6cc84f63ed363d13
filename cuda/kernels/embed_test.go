package kernels

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu"
)

// idsFor returns ids inside and outside a part of a table, one of them frequent.
func idsFor(tokens, lo, n int) []int32 {
	ids := make([]int32, tokens)
	for i := range ids {
		ids[i] = int32(lo + i*7%(n+4) - 2)
		if i%3 == 0 {
			ids[i] = int32(lo + n/2)
		}
	}
	return ids
}

func TestEmbed(t *testing.T) {
	for _, types := range kernelOf("embed").Types {
		to, from, _ := strings.Cut(types, "_")
		y, table := elemOf(to), elemOf(from)
		b := bench{t, elem{name: types}, machineOf(t, "embed.cu")}
		for _, cols := range []int{3, 64, 1048} {
			const tokens, lo, n = 21, 100, 9
			rows, ids, want := table.draw(n*cols, "table"), idsFor(tokens, lo, n), make([]float64, tokens*cols)
			cpu.Table[float64]().Embed(want, rows, ids, cols, lo, n)
			out := y.buffer(nans(tokens * cols))
			b.run("embed", tokens, cols, out, table.buffer(rows), ints(ids), tokens, cols, lo, n)
			y.same(t, fmt.Sprint("embed_", types, cols), y.values(out), want)
		}
	}
}

func TestEmbedGrad(t *testing.T) {
	for _, types := range kernelOf("embed_grad").Types {
		to, from, _ := strings.Cut(types, "_")
		g, x := elemOf(to), elemOf(from)
		b := bench{t, elem{name: types}, machineOf(t, "embed.cu")}
		for _, cols := range []int{3, 64, 520} {
			for _, tokens := range []int{0, 1, 200} {
				const lo, n = 1000, 11
				ids, dy, want := idsFor(tokens, lo, n), x.draw(tokens*cols, "dy"), g.draw(n*cols, "dtable")
				dtable := g.buffer(want)
				cpu.Table[float64]().EmbedGrad(want, dy, ids, cols, lo, n, true)
				rows, starts, order := Buckets(ids, lo, n)
				b.run("embed_grad", min(tokens, n), cols, dtable, x.buffer(dy), ints([]int32{int32(len(rows))}),
					ints(rows), ints(starts), ints(order), cols)
				g.near(t, fmt.Sprint("embed_grad_", types, cols, tokens), g.values(dtable), want, 4, 2*float64(tokens))
			}
		}
	}
}

func TestBuckets(t *testing.T) {
	rows, starts, order := Buckets([]int32{7, 5, 9, 7, 4, 7, 10}, 5, 5)
	if !slices.Equal(rows, []int32{0, 2, 4}) || !slices.Equal(starts, []int32{0, 1, 4, 5}) ||
		!slices.Equal(order, []int32{1, 0, 3, 5, 2}) {
		t.Errorf("buckets %v of %v: %v", rows, starts, order)
	}
	rows, starts, order = Buckets(nil, 0, 3)
	if len(rows) != 0 || len(starts) != 1 || len(order) != 0 {
		t.Errorf("buckets of nothing: %v %v %v", rows, starts, order)
	}
}
