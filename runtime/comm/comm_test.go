package comm

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/planc-dev/planc/runtime/num"
)

// each runs f on every rank of a world over mesh, as its end of the group over atoms.
func each(t *testing.T, w *World, mesh Mesh, atoms []string, f func(rank int, g *Group) error) []error {
	t.Helper()
	errs := make([]error, mesh.Size())
	var wg sync.WaitGroup
	for r := range mesh.Size() {
		g, err := w.Join(r, atoms, Main)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { errs[r] = f(r, g) })
	}
	wg.Wait()
	return errs
}

func must(t *testing.T, errs []error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func random[F float32 | float64](n int, seed uint64) []F {
	rnd := rand.New(rand.NewPCG(seed, 1))
	out := make([]F, n)
	for i := range out {
		out[i] = F(rnd.NormFloat64() * math.Exp(rnd.NormFloat64()*4))
	}
	return out
}

func TestMembers(t *testing.T) {
	mesh := Mesh{{"tp", 2}, {"a", 2}, {"b", 3}}
	for _, test := range []struct {
		rank  int
		atoms string
		want  []int
		me    int
	}{
		{0, "tp", []int{0, 1}, 0},
		{5, "tp", []int{4, 5}, 1},
		{5, "a b", []int{1, 3, 5, 7, 9, 11}, 2},
		{5, "b a", []int{1, 5, 9, 3, 7, 11}, 1},
		{7, "", []int{7}, 0},
		{10, "b", []int{2, 6, 10}, 2},
	} {
		got, me, err := mesh.Members(test.rank, strings.Fields(test.atoms))
		if err != nil || !slices.Equal(got, test.want) || me != test.me || got[me] != test.rank {
			t.Errorf("members of %q around %d: %v, %d, %v; want %v, %d", test.atoms, test.rank, got, me, err,
				test.want, test.me)
		}
	}
	if _, _, err := mesh.Members(0, []string{"pp"}); err == nil {
		t.Error("unknown axis was taken")
	}
}

func TestAllReduceIsReduceScatterAllGather(t *testing.T) {
	t.Run("f32", testReduceLaw[float32])
	t.Run("f64", testReduceLaw[float64])
}

func testReduceLaw[F float32 | float64](t *testing.T) {
	mesh := Mesh{{"x", 2}, {"dp", 3}}
	for _, inner := range []int{1, 15, 700, 5000} {
		n := 3 * inner
		whole := make([][]F, 6)
		parts := make([][]F, 6)
		w := NewWorld(mesh, 0)
		must(t, each(t, w, mesh, []string{"dp"}, func(r int, g *Group) error {
			whole[r] = random[F](n, uint64(r))
			parts[r] = slices.Clone(whole[r])
			if err := AllReduce(g, whole[r], Sum); err != nil {
				return err
			}
			mine := parts[r][g.Index()*inner : (g.Index()+1)*inner]
			if err := ReduceScatter(g, mine, parts[r], 1, inner); err != nil {
				return err
			}
			return AllGather(g, parts[r], mine, 1, inner, n)
		}))
		for r := range 6 {
			if !slices.Equal(whole[r], parts[r]) || !slices.Equal(whole[r], whole[r%2]) {
				t.Errorf("inner %d: rank %d differs", inner, r)
			}
			want := random[F](n, uint64(r%2))
			for _, k := range []int{r%2 + 2, r%2 + 4} {
				for j, x := range random[F](n, uint64(k)) {
					want[j] += x
				}
			}
			if !slices.Equal(whole[r], want) {
				t.Errorf("inner %d: rank %d was not summed in rank order", inner, r)
			}
		}
	}
}

func TestRows(t *testing.T) {
	mesh := Mesh{{"tp", 3}}
	const outer, inner, total = 4, 3, 7 // the last part is 1 wide
	w := NewWorld(mesh, 0)
	must(t, each(t, w, mesh, []string{"tp"}, func(r int, g *Group) error {
		src := make([]float64, outer*inner)
		for i := range src {
			src[i] = float64(100*r + i)
		}
		dst := make([]float64, outer*total)
		if err := AllGather(g, dst, src, outer, inner, total); err != nil {
			return err
		}
		for i, x := range dst {
			o, c := i/total, i%total
			if want := float64(100*(c/inner) + o*inner + c%inner); x != want {
				return fmt.Errorf("gathered [%d,%d] is %v, want %v", o, c, x, want)
			}
		}
		wide := random[float64](outer*inner*3, uint64(r))
		sum := slices.Clone(wide)
		if err := AllReduce(g, sum, Sum); err != nil {
			return err
		}
		want, got := make([]float64, outer*inner), make([]float64, outer*inner)
		Slice(g, want, sum, outer, inner)
		if err := ReduceScatter(g, got, wide, outer, inner); err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return errors.New("reduce-scatter is not the slice of all-reduce")
		}
		return nil
	}))
}

func TestOps(t *testing.T) {
	mesh := Mesh{{"tp", 3}}
	inf := math.Inf(-1)
	in := [3][]float64{{1, inf, 1000, inf}, {5, inf, 1000, -3}, {-2, inf, 999, inf}}
	w := NewWorld(mesh, 0)
	must(t, each(t, w, mesh, []string{"tp"}, func(r int, g *Group) error {
		top, lse := slices.Clone(in[r]), slices.Clone(in[r])
		if err := AllReduce(g, top, Max); err != nil {
			return err
		}
		if !slices.Equal(top, []float64{5, inf, 1000, -3}) {
			return fmt.Errorf("max is %v", top)
		}
		if err := AllReduce(g, lse, LSE); err != nil {
			return err
		}
		want := math.Log(math.Exp(1) + math.Exp(5) + math.Exp(-2))
		if math.Abs(lse[0]-want) > 1e-14 || lse[1] != inf || lse[2] != 1000+math.Log(2+math.Exp(-1)) || lse[3] != -3 {
			return fmt.Errorf("lse is %v", lse)
		}
		return nil
	}))
}

// A sum of 16-bit elements runs in float32, in the members' order, and is rounded once; collectives that only move
// leave the bits alone.
func TestHalves(t *testing.T) {
	t.Run("bf16", func(t *testing.T) { testHalves(t, num.ToBF16) })
	t.Run("f16", func(t *testing.T) { testHalves(t, num.ToF16) })
}

func testHalves[H num.Half](t *testing.T, round func(float32) H) {
	mesh := Mesh{{"dp", 4}}
	const inner = 600
	in, sum := make([][]H, 4), make([]float32, 4*inner)
	for r := range in {
		wide := random[float32](4*inner, uint64(r))
		in[r] = make([]H, len(wide))
		num.Store(in[r], wide)
		num.Load(wide, in[r])
		for j, x := range wide {
			sum[j] += x
		}
	}
	want := make([]H, len(sum))
	for j, x := range sum {
		want[j] = round(x)
	}
	must(t, each(t, NewWorld(mesh, 0), mesh, []string{"dp"}, func(r int, g *Group) error {
		whole, part, joined := slices.Clone(in[r]), make([]H, inner), make([]H, 4*inner)
		if err := AllReduce(g, whole, Sum); err != nil {
			return err
		}
		if err := ReduceScatter(g, part, in[r], 1, inner); err != nil {
			return err
		}
		if err := AllGather(g, joined, part, 1, inner, 4*inner); err != nil {
			return err
		}
		if !slices.Equal(whole, want) || !slices.Equal(joined, want) {
			return errors.New("the sum is not that of float32, rounded once")
		}
		return nil
	}))
}

func TestGroupOfOneIsFree(t *testing.T) {
	w := NewWorld(Mesh{{"dp", 1}}, 0)
	g, _ := w.Join(0, []string{"dp"}, Main)
	buf := random[float32](100, 1)
	want := slices.Clone(buf)
	if err := errors.Join(AllReduce(g, buf, LSE), ReduceScatter(g, buf, buf, 1, 100), AllGather(g, buf, buf, 1, 100,
		100), Barrier(g)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(buf, want) || g.ch.round.Load() != 0 {
		t.Error("a group of one did something")
	}
}

func TestAbortFreesTheOthers(t *testing.T) {
	mesh := Mesh{{"dp", 4}}
	w := NewWorld(mesh, 0)
	cause := errors.New("rank 2: disk on fire")
	start := time.Now()
	errs := each(t, w, mesh, []string{"dp"}, func(r int, g *Group) error {
		if r == 2 {
			time.Sleep(50 * time.Millisecond) // the others sleep by now
			w.Fail(cause)
			return cause
		}
		return AllReduce(g, make([]float32, 10), Sum)
	})
	if d := time.Since(start); d > time.Minute {
		t.Errorf("the others were freed after %v", d)
	}
	for r, err := range errs {
		want := fmt.Sprintf("rank %d gave up all_reduce(sum) over dp: rank 2: disk on fire", r)
		if r != 2 && (err == nil || err.Error() != want || !errors.Is(err, cause)) {
			t.Errorf("rank %d: %v, want %s", r, err, want)
		}
	}
}

func TestTimeoutNamesTheAbsent(t *testing.T) {
	mesh := Mesh{{"dp", 3}}
	w := NewWorld(mesh, time.Second) // in which the two that come have come, on a busy machine too
	errs := each(t, w, mesh, []string{"dp"}, func(r int, g *Group) error {
		if r == 1 {
			return nil
		}
		return Barrier(g)
	})
	var late *Timeout
	if !errors.As(errors.Join(errs...), &late) || !slices.Equal(late.Absent, []int{1}) {
		t.Fatalf("errors are %v", errs)
	}
	if want := " waited 1s in barrier over dp for rank 1"; !strings.HasSuffix(late.Error(), want) {
		t.Errorf("message %q, want ...%q", late.Error(), want)
	}
}

func TestMismatchIsNamed(t *testing.T) {
	mesh := Mesh{{"dp", 2}}
	w := NewWorld(mesh, time.Minute)
	errs := each(t, w, mesh, []string{"dp"}, func(r int, g *Group) error {
		return AllReduce(g, make([]float64, 3+r), Sum)
	})
	if errs[0] == nil || errs[1] == nil || !strings.Contains(errs[0].Error(), "all_reduce(sum) of 4 × f64") {
		t.Errorf("errors are %v", errs)
	}
}

func TestStreamsDoNotMix(t *testing.T) {
	mesh := Mesh{{"dp", 2}}
	w := NewWorld(mesh, time.Minute)
	var wg sync.WaitGroup
	for r := range 2 {
		for _, s := range []Stream{Main, Overlap} {
			g, _ := w.Join(r, []string{"dp"}, s)
			wg.Go(func() {
				for range 300 {
					buf := []float64{float64(s) + 1}
					if err := AllReduce(g, buf, Sum); err != nil || buf[0] != 2*float64(s)+2 {
						t.Errorf("rank %d stream %v: %v %v", r, s, buf, err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

func TestNoAllocations(t *testing.T) {
	mesh := Mesh{{"dp", 2}}
	w := NewWorld(mesh, 0)
	a, _ := w.Join(0, []string{"dp"}, Main)
	b, _ := w.Join(1, []string{"dp"}, Main)
	const runs = 100
	work := func(g *Group, buf []float32) {
		_ = AllReduce(g, buf, Sum)
		_ = AllGather(g, buf, buf[g.Index()*50:][:50], 1, 50, 100)
	}
	go func() {
		buf := make([]float32, 100)
		for range runs + 1 {
			work(b, buf)
		}
	}()
	buf := make([]float32, 100)
	if n := testing.AllocsPerRun(runs, func() { work(a, buf) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAllReduce(b *testing.B) {
	for _, size := range []int{1 << 4, 1 << 16, 1 << 22} {
		b.Run(fmt.Sprintf("2ranks/%d", size), func(b *testing.B) {
			w := NewWorld(Mesh{{"dp", 2}}, 0)
			var wg sync.WaitGroup
			b.SetBytes(int64(4 * size))
			for r := range 2 {
				g, _ := w.Join(r, []string{"dp"}, Main)
				buf := make([]float32, size)
				wg.Go(func() {
					for range b.N {
						_ = AllReduce(g, buf, Sum)
					}
				})
			}
			wg.Wait()
		})
	}
}
