package kernels

import (
	"fmt"
	"sync"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// together calls f on each of n ranks of a group.
func together(t *testing.T, n int, f func(g *comm.Group, me int) error) {
	t.Helper()
	world := comm.NewWorld(comm.Mesh{{Name: "a", Size: n}}, 0)
	var wg sync.WaitGroup
	for me := range n {
		wg.Go(func() {
			g, err := world.Join(me, []string{"a"}, comm.Main)
			if err == nil {
				err = f(g, me)
			}
			if err != nil {
				world.Fail(err)
			}
		})
	}
	wg.Wait()
	if world.Err() != nil {
		t.Fatal(world.Err())
	}
}

// The ranks' data are contiguous, rank by rank, before gather and after scatter, like in NCCL.
func TestGatherAndScatter(t *testing.T) {
	inEachType(t, "gather", func(b bench) {
		for _, s := range []struct{ outer, members, inner, total, zigzag int }{
			{3, 4, 5, 20, 0}, {1, 3, 7, 21, 0}, {3, 4, 5, 17, 0}, {2, 3, 64, 192, 0}, {2, 2, 1040, 2079, 0},
			{3, 2, 12, 24, 2}, {2, 4, 8, 32, 4}, {3, 4, 6, 24, 2}, {2, 3, 8, 24, 2}, {1, 2, 64, 128, 2},
		} {
			part := s.outer * s.inner
			x := b.draw(s.members*part, "x")
			whole := make([]float64, s.outer*s.total)
			together(t, s.members, func(g *comm.Group, me int) error {
				dst := make([]float64, len(whole))
				if me == 0 {
					dst = whole
				}
				if s.zigzag > 0 {
					return comm.AllGatherZigzag(g, dst, x[me*part:][:part], s.outer, s.inner, s.total, s.zigzag)
				}
				return comm.AllGather(g, dst, x[me*part:][:part], s.outer, s.inner, s.total)
			})
			y := b.buffer(nans(len(whole)))
			b.run("gather", s.members*s.outer, s.inner, y, b.buffer(x), s.outer, s.members, s.inner, s.total, s.zigzag)
			b.near(t, fmt.Sprint("gather", s), b.values(y), whole, 0, 0)
			if s.members*s.inner != s.total {
				continue
			}
			back, mine := b.buffer(nans(len(x))), make([]float64, len(x))
			b.run("scatter", s.members*s.outer, s.inner, back, y, s.outer, 0, s.members, s.inner, s.total, s.zigzag)
			together(t, s.members, func(g *comm.Group, me int) error {
				if s.zigzag > 0 {
					comm.SliceZigzag(g, mine[me*part:][:part], whole, s.outer, s.inner, s.zigzag)
				} else {
					comm.Slice(g, mine[me*part:][:part], whole, s.outer, s.inner)
				}
				return nil
			})
			b.near(t, fmt.Sprint("scatter", s), b.values(back), mine, 0, 0)
			last := b.buffer(nans(part))
			b.run("scatter", s.outer, s.inner, last, y, s.outer, s.members-1, 1, s.inner, s.total, s.zigzag)
			b.near(t, fmt.Sprint("the last of", s), b.values(last), mine[len(x)-part:], 0, 0)
		}
	})
}

// An all-to-all is a scatter, an exchange of equal parts, and a gather.
func TestAllToAllIsScatterAndGather(t *testing.T) {
	inEachType(t, "gather", func(b bench) {
		const n = 3
		for _, turn := range []comm.AllToAllShape{{Outer: 2, First: 2, Middle: 3, Second: 1, Inner: 5},
			{Outer: 1, First: 4,
				Middle: 1, Second: 2, Inner: 8, Back: true}, {Outer: 2, First: 3, Middle: 2, Second: 2, Inner: 4,
				Back: true}} {
			each := turn.Outer * turn.First * turn.Middle * turn.Second * turn.Inner
			var src, want [n][]float64
			for i := range n {
				src[i], want[i] = b.draw(n*each, fmt.Sprint("src ", i)), make([]float64, n*each)
			}
			together(t, n, func(g *comm.Group, me int) error { return comm.AllToAll(g, want[me], src[me], turn) })
			// first and second: rows and width of the two dims
			first, second := [2]int{turn.Outer, turn.First * turn.Middle * turn.Second * turn.Inner},
				[2]int{turn.Outer * turn.First * turn.Middle, turn.Second * turn.Inner}
			if !turn.Back {
				first, second = second, first
			}
			var sent [n][]float64
			for i := range n {
				y := b.buffer(nans(n * each))
				b.run("scatter", n*first[0], first[1], y, b.buffer(src[i]), first[0], 0, n, first[1], n*first[1], 0)
				sent[i] = b.values(y)
			}
			for me := range n {
				var got []float64
				for i := range n {
					got = append(got, sent[i][me*each:][:each]...)
				}
				y := b.buffer(nans(n * each))
				b.run("gather", n*second[0], second[1], y, b.buffer(got), second[0], n, second[1], n*second[1], 0)
				b.near(t, fmt.Sprint("all_to_all ", turn), b.values(y), want[me], 0, 0)
			}
		}
	})
}

func TestFillAndRound(t *testing.T) {
	inEachType(t, "fill", func(b bench) {
		for _, n := range []int{1, 64, 1003} {
			y := b.buffer(nans(n))
			b.run("fill", 1, n, y, 0.3, int64(n))
			want := make([]float64, n)
			for i := range want {
				want[i] = b.values(b.buffer([]float64{0.3}))[0]
			}
			b.near(t, "fill", b.values(y), want, 0, 0)
			if b.name != "bf16" && b.name != "f16" {
				continue
			}
			f32 := elems[0]
			v := append(f32.draw(n, "round"), 1+0x1p-8, 1+3*0x1p-8, 65519, 1e-45)
			x := f32.buffer(v)
			for i := range v {
				v[i] = float64(num.RoundF16(float32(v[i])))
				if b.name == "bf16" {
					v[i] = float64(num.RoundBF16(float32(f32.values(x)[i])))
				}
			}
			if err := b.m.Launch("round_as_f32_"+b.name, emulate.Launch(flat(1, len(v))), x,
				int64(len(v))); err != nil {
				t.Fatal(err)
			}
			f32.near(t, "round_as", f32.values(x), v, 0, 0)
		}
	})
}

func TestStepNumbers(t *testing.T) {
	m := machineOf(t, "step.cu")
	double := elems[1]
	for _, w := range []cpu.Where{{}, {At: 40}, {At: 3, Half: 150, Then: 4000}} {
		for _, most := range []int{0, 4050} {
			want := make([]int32, 301)
			runtime.Iota(want, w, 7)
			if most != 0 {
				runtime.CapIDs(want, most)
			}
			ids := ints(make([]int32, len(want)))
			bench{t, double, m}.run("iota", 1, len(want), ids, w.At, w.Half, w.Then, 7, most, int64(len(want)))
			for i, id := range intsOf(ids) {
				if id != want[i] {
					t.Fatalf("iota of %+v, at most %d: [%d] is %d, want %d", w, most, i, id, want[i])
				}
			}
		}
	}
	for _, e := range elems {
		b := bench{t, e, m}
		y := b.buffer(nans(1))
		b.run("inv_count", 1, 1, y, double.buffer([]float64{1024}), double.buffer([]float64{771}))
		b.near(t, "inv_count", b.values(y), []float64{1024. / 771}, 1, 2)
		sum := double.buffer([]float64{1e9})
		x := b.draw(1, "x")
		b.run("add_scalar", 1, 1, sum, b.buffer(x))
		double.near(t, "add_scalar", double.values(sum), []float64{1e9 + x[0]}, 0, 0)
	}
	for _, loss := range []float64{2.5, nans(1)[0]} {
		part := double.draw(700, "part")
		want := []float64{0, 0}
		for _, x := range part {
			want[0] += x
		}
		if loss != loss {
			want[1] = 1
		}
		pair := double.buffer(nans(2))
		bench{t, double, m}.run("norm_pair", 1, len(part), pair, double.buffer(part),
			double.buffer([]float64{loss}), len(part))
		double.near(t, "norm_pair", double.values(pair), want, 700, 2)
	}
}
