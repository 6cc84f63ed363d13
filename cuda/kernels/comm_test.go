package kernels

import (
	"fmt"
	"math"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels/emulate"
)

// members returns the memories of four ranks.
func (b bench) members(n int) (table emulate.Table, values [][]float64) {
	for i := range 4 {
		v := b.draw(n, fmt.Sprint("member ", i))
		table, values = append(table, b.buffer(v)), append(values, v)
	}
	return table, values
}

// joined reduces the members with op, in their order and in the compute type.
func (b bench) joined(values [][]float64, j int, op func(x, y float64) float64) float64 {
	a, v := b.computed(), values[0][j]
	for _, m := range values[1:] {
		v = a.values(a.buffer([]float64{op(v, m[j])}))[0]
	}
	return b.values(b.buffer([]float64{v}))[0]
}

func plus(x, y float64) float64 { return x + y }

// Every member has the same bits, the sum in the members' order. Elements outside the part are unchanged.
func TestAllReduce(t *testing.T) {
	inEachType(t, "all_reduce_sum", func(b bench) {
		for _, c := range [][3]int64{{10, 0, 10}, {4096, 1024, 2051}, {300, 7, 300}} {
			n, lo, hi := int(c[0]), c[1], c[2]
			for kernel, op := range map[string]func(x, y float64) float64{"all_reduce_sum": plus,
				"all_reduce_max": math.Max} {
				table, values := b.members(n)
				values[2][lo+1] = math.Inf(-1)
				values[1][lo+2] = math.NaN()
				if kernel == "all_reduce_sum" {
					values[1][lo+2] = math.Inf(1)
				}
				for i := range table {
					table[i].Bytes = b.buffer(values[i]).Bytes
				}
				b.run(kernel, 1, int(hi-lo), table, len(table), lo, hi)
				for i := range table {
					want := append([]float64(nil), values[i]...)
					for j := lo; j < hi; j++ {
						want[j] = b.joined(values, int(j), op)
					}
					b.near(b.T, fmt.Sprint(kernel, c), b.values(table[i]), want, 0, 0)
				}
			}
		}
	})
}

func TestAllReduceLSE(t *testing.T) {
	inEachType(t, "all_reduce_lse", func(b bench) {
		const n = 37
		table, values := b.members(n)
		for _, v := range values {
			v[0], v[1] = math.Inf(-1), v[1]+700
		}
		values[3][2], values[1][3] = math.Inf(-1), math.NaN()
		for i := range table {
			table[i].Bytes = b.buffer(values[i]).Bytes
		}
		b.run("all_reduce_lse", 1, n, table, len(table), int64(0), int64(n))
		want := make([]float64, n)
		for j := range want {
			top, sum := math.Inf(-1), 0.0
			for _, v := range values {
				top = max(top, v[j])
			}
			for _, v := range values {
				sum += math.Exp(v[j] - top)
			}
			want[j] = top + math.Log(sum)
			if math.IsInf(top, -1) {
				want[j] = top
			}
		}
		for i := range table {
			b.near(b.T, "lse", b.values(table[i]), want, 2, 4)
		}
	})
}

func TestReduceScatter(t *testing.T) {
	inEachType(t, "reduce_scatter_sum", func(b bench) {
		const rows, cols, me = 5, 33, 2
		table, values := b.members(rows * cols * 4)
		y := b.buffer(nans(rows * cols))
		b.run("reduce_scatter_sum", rows, cols, y, table, len(table), rows, cols, 4*cols, me*cols)
		want := make([]float64, rows*cols)
		for i := range rows {
			for j := range cols {
				want[i*cols+j] = b.joined(values, (i*4+me)*cols+j, plus)
			}
		}
		b.near(b.T, "reduce_scatter", b.values(y), want, 0, 0)
	})
}
