package tensors

import (
	"fmt"
	"math"
	goruntime "runtime"
	"runtime/debug"
	"sync"

	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rng"
)

// initKey separates the random numbers of the initial parameters from other uses of the seed.
const initKey = 0x696e6974 // "init"

// initParams fills the rank's parameters with random numbers that depend on (seed, name, layer, index in the logical
// tensor) only: they are the same on any plan and with any number of threads. Padding stays zero.
func initParams[F Float](r *Store, seed uint64) {
	ts := Of(r.Data, r.Coord)
	type block struct{ Tensor, lo int }
	blocks := make(chan block, len(ts))
	var drawing sync.WaitGroup
	var fault sync.Once
	var wrong any // panic of a goroutine; only a recover in that goroutine sees it
	for range max(1, goruntime.GOMAXPROCS(0)/r.Data.MeshSize()) {
		drawing.Go(func() {
			defer func() {
				if x := recover(); x != nil {
					fault.Do(func() { wrong = fmt.Sprintf("%v\n%s", x, debug.Stack()) })
					for range blocks { // so that the sender does not block
					}
				}
			}()
			var b [BlockElems]F
			for at := range blocks {
				t := &ts[at.Tensor]
				out := b[:min(t.Local-at.lo, BlockElems)]
				initTensor(out, t, at.lo, seed)
				for _, k := range weightKinds(r.Data) {
					if !t.isApart() {
						put(r, &k, t, at.lo, out)
						continue
					}
					t.Runs(at.lo, at.lo+len(out), func(local, _, n int) { put(r, &k, t, local, out[local-at.lo:][:n]) })
				}
			}
		})
	}
	for i := range ts {
		for lo := 0; lo < ts[i].Local; lo += BlockElems { // no iteration if another stage has the tensor
			blocks <- block{i, lo}
		}
	}
	close(blocks)
	drawing.Wait()
	if wrong != nil {
		panic(wrong)
	}
}

// put stores local elements of a tensor from element first, as far as the rank has them.
func put[F Float](r *Store, k *kind, t *Tensor, first int, x []F) {
	lo, hi, at := k.piece(r, t)
	from, to := max(lo, first), min(hi, first+len(x))
	if from < to {
		Write(r, k.elem, at+(from-lo)*k.elem.Size(), x[from-first:to-first])
	}
}

// initTensor computes the initial values of local elements of a tensor from element lo.
func initTensor[F Float](out []F, t *Tensor, lo int, seed uint64) {
	key := rng.Key(rng.KeyString(rng.Key(seed, initKey), t.param.Name), uint64(t.layer))
	clear(out)
	drawn, zero := drawnElems(t.param), zeroElements(t.param)
	t.Runs(lo, lo+len(out), func(local, logical, n int) {
		n = min(n, drawn-logical)
		switch t.param.Init.Kind {
		case program.Ones:
			for j := range n {
				out[local-lo+j] = 1
			}
		case program.Normal:
			for j := range n {
				if !zero.has(logical + j) {
					out[local-lo+j] = F(t.param.Init.Std * rng.Normal(key, uint64(logical+j)))
				}
			}
		}
	})
}

// elements is a range of elements of a logical tensor.
type elements struct{ from, to int }

func (e elements) has(i int) bool { return e.from <= i && i < e.to }

// zeroElements returns the elements of the row whose initial value is 0.
func zeroElements(p *program.Param) elements {
	if p.Init.Zero == 0 {
		return elements{}
	}
	return elements{(p.Init.Zero - 1) * rowElems(p), p.Init.Zero * rowElems(p)}
}

// rowElems returns the number of elements of a row of the first dim.
func rowElems(p *program.Param) int {
	n := 1
	for _, d := range p.Dims[1:] {
		n *= d.Size
	}
	return n
}

// drawnElems returns the number of leading elements of a logical tensor whose initial values are drawn.
func drawnElems(p *program.Param) int {
	if p.Init.First == 0 {
		return math.MaxInt
	}
	return p.Init.First * rowElems(p)
}
