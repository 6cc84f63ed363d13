package kernels

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/rng"
)

// update is a kernel for types of parameters, gradients and moments.
type update struct {
	bench
	p, g, m elem
}

func inEachUpdate(t *testing.T, test func(u update)) {
	for _, types := range kernelOf("adam").Types {
		s := strings.Split(types, "_")
		t.Run(types, func(t *testing.T) {
			test(update{bench{t, elem{name: types}, machineOf(t, "optimizer.cu")}, elemOf(s[0]), elemOf(s[1]),
				elemOf(s[2])})
		})
	}
}

var adamStep = cpu.AdamStep{LR: 3e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Scale: 0.25, T: 3}

// adamRates returns the rates of a step in the kernel's layout.
func adamRates(o cpu.AdamStep, decoupled bool) []float64 {
	step, root := o.LR/(1-math.Pow(o.Beta1, float64(o.T))), 1/math.Sqrt(1-math.Pow(o.Beta2, float64(o.T)))
	shrink, decay := 1-o.LR*o.WeightDecay, 0.0
	if !decoupled {
		shrink, decay = 1, o.WeightDecay
	}
	return []float64{step, root, shrink, decay, o.Beta1, 1 - o.Beta1, o.Beta2, 1 - o.Beta2, o.Eps}
}

// The kernel equals package cpu bit for bit, because nothing is summed.
func TestAdam(t *testing.T) {
	inEachUpdate(t, func(u update) {
		for _, n := range []int{3, 1000, 1003} {
			for _, decoupled := range []bool{true, false} {
				for _, mastered := range []bool{true, false} {
					u.adam(n, decoupled, mastered)
				}
			}
		}
	})
}

func (u update) adam(n int, decoupled, mastered bool) {
	a, clip := u.p.computed(), elems[1]
	x, g, m, v := u.p.draw(n, "p"), u.g.draw(n, "g"), u.m.draw(n, "m"), u.m.draw(n, "v")
	for i := range v {
		v[i] = math.Abs(v[i])
	}
	var master any
	if mastered {
		x = a.draw(n, "master")
		master = a.buffer(x)
	}
	p, mb, vb := u.p.buffer(x), u.m.buffer(m), u.m.buffer(v)
	rates := adamRates(adamStep, decoupled)
	u.run("adam", 1, n, p, master, u.g.buffer(g), mb, vb, clip.buffer([]float64{1, adamStep.Scale, 0}),
		clip.buffer(rates), nil, nil, int64(n))
	if u.p.name == "f64" {
		kernel := cpu.Table[float64]().AdamW
		if !decoupled {
			kernel = cpu.Table[float64]().Adam
		}
		kernel(x, g, m, v, adamStep)
	} else {
		x, m, v = inFloats(x, g, m, v, decoupled)
	}
	what := fmt.Sprint("adam of ", n, decoupled, mastered)
	u.p.same(u.T, what+" p", u.p.values(p), x)
	if mastered {
		a.same(u.T, what+" master", a.values(master.(*emulate.Buffer)), x)
	}
	u.m.same(u.T, what+" m", u.m.values(mb), m)
	u.m.same(u.T, what+" v", u.m.values(vb), v)
}

// inFloats computes the update in float32, in plain Go.
func inFloats(x, g, m, v []float64, decoupled bool) (_, _, _ []float64) {
	defer cpu.Use(cpu.InUse())
	cpu.Use(cpu.Portable)
	p32, g32, m32, v32 := floats(x), floats(g), floats(m), floats(v)
	kernel := cpu.Table[float32]().AdamW
	if !decoupled {
		kernel = cpu.Table[float32]().Adam
	}
	kernel(p32, g32, m32, v32, adamStep)
	return doubles(p32), doubles(m32), doubles(v32)
}

func floats(v []float64) []float32 {
	f := make([]float32, len(v))
	num.Store(f, v)
	return f
}

func doubles(v []float32) []float64 {
	f := make([]float64, len(v))
	num.Load(f, v)
	return f
}

// same checks that all numbers are equal in the storage type, bit for bit.
func (e elem) same(t *testing.T, what string, got, want []float64) {
	t.Helper()
	want = e.values(e.buffer(want))
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			t.Fatalf("%s[%d] is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestSGD(t *testing.T) {
	inEachUpdate(t, func(u update) {
		const lr, wd, scale = 0.1, 0.01, 0.5
		clip := elems[1].buffer([]float64{1, scale, 0})
		for _, momentum := range []float64{0, 0.9} {
			n := 77
			x, g, m := u.p.draw(n, "p"), u.g.draw(n, "g"), u.m.draw(n, "m")
			p, mb := u.p.buffer(x), u.m.buffer(m)
			var arg any = mb
			if momentum == 0 {
				arg, m = nil, nil
			}
			u.run("sgd", 1, n, p, nil, u.g.buffer(g), arg, clip, elems[1].buffer([]float64{lr, momentum, wd}), nil,
				nil, int64(n))
			cpu.Table[float64]().SGD(x, g, m, cpu.SGDStep{LR: lr, Momentum: momentum, WeightDecay: wd, Scale: scale})
			u.p.near(u.T, "p", u.p.values(p), x, 8, 3)
			if m != nil {
				u.m.near(u.T, "m", u.m.values(mb), m, 8, 3)
			}
		}
	})
}

// A skipped step changes nothing, whatever the gradients are.
func TestSkippedStep(t *testing.T) {
	inEachUpdate(t, func(u update) {
		const n = 9
		x := u.p.draw(n, "p")
		for _, kernel := range []string{"adam", "sgd"} {
			p, m, v := u.p.buffer(x), u.m.buffer(x), u.m.buffer(x)
			args := []any{p, nil, u.g.buffer(nans(n)), m, v, elems[1].buffer([]float64{math.NaN(), 1, 1}),
				elems[1].buffer(nans(9)), nil, nil, int64(n)}
			if kernel == "sgd" {
				args = slices.Delete(args, 4, 5)
			}
			u.run(kernel, 1, n, args...)
			u.p.same(u.T, kernel, u.p.values(p), x)
			u.m.same(u.T, kernel, u.m.values(m), x)
		}
	})
}

// numberOf returns the number of element i according to a kernel's table.
func numberOf(table []uint64, i uint64) uint64 {
	i += table[0]
	n := table[1]
	for d := table[3:]; len(d) > 0; d = d[2:] {
		n += i % d[0] * d[1]
		i /= d[0]
	}
	return n
}

// Stochastic rounding to bf16 depends on the key's stream and the element's number in the model. It gives
// one of the two neighbours, and on average the number itself. Each kernel gets an update of zero.
func TestStochasticRounding(t *testing.T) {
	inEachUpdate(t, func(u update) {
		if u.p.name != "bf16" {
			return
		}
		for _, table := range [][]uint64{
			{0, 1 << 33, 1, 1 << 20, 1},                  // as in the model
			{5, 1 << 33, 2, 64, 1, 1000, 128},            // half of each row
			{1001, 3, 3, 6, 1, 3, 10, 1 << 20, 1 << 34},  // two dims are split, in runs that are not whole packs
			{77, 1 << 40, 2, 1, 9, 1 << 20, 10},          // runs of one
			{2, 7, 4, 8, 1, 2, 100, 16, 1000, 999, 5000}, // runs as long as packs, but misaligned
		} {
			for _, kernel := range []string{"adam", "sgd", "level"} {
				u.stochastic(kernel, table)
			}
		}
	})
}

func (u update) stochastic(kernel string, table []uint64) {
	const n, key = 4099, 0x0fedcba987654321
	x := slices.Repeat([]float64{float64(float32(1 + 0x1p-7*0.3))}, n) // 0.3 of the distance between two bf16 numbers
	// NaN and numbers that need no rounding are unchanged
	x[1], x[2] = math.NaN(), 3
	zero := make([]float64, n)
	p, g, double := u.p.buffer(nans(n)), u.g.buffer(zero), elems[1].buffer
	args := []any{p, elems[0].buffer(x), g}
	switch kernel {
	case "adam":
		args = append(args, u.m.buffer(zero), u.m.buffer(zero), double([]float64{0, 1, 0}),
			double([]float64{0, 1, 1, 0, 0, 0, 0, 0, 1}))
	case "sgd":
		args = append(args, nil, double([]float64{0, 1, 0}), double(zero[:3]))
	case "level":
		args = append(args, double([]float64{0, 1, 0}), 0.0, 1.0, 0.0)
	}
	u.run(kernel, 1, n, append(args, words(key), words(table...), int64(n))...)
	up, got := 0, u.p.values(p)
	for i := range got {
		want := num.StochasticRound(float32(x[i]), uint16(rng.Bits(key, numberOf(table, uint64(i)))>>48))
		if i != 1 && got[i] != float64(want.Wide()) {
			u.Fatalf("%s, %v: number %d is %v, want %v", kernel, table, i, got[i], want.Wide())
		}
		if got[i] == 1+0x1p-7 {
			up++
		}
	}
	if !math.IsNaN(got[1]) || got[2] != 3 {
		u.Errorf("%s: NaN and 3 became %v", kernel, got[1:3])
	}
	if share := float64(up) / n; math.Abs(share-0.3) > 5*math.Sqrt(0.3*0.7/n) {
		u.Errorf("%s, %v: %v of the numbers were rounded up, want 0.3", kernel, table, share)
	}
}

// Experts' biases move by the rate if the load is uneven, and only then.
func TestLevel(t *testing.T) {
	inEachUpdate(t, func(u update) {
		const rate, experts, choices = 0.5, 4, 64
		x, got := []float64{1, 1, 1, -2}, []float64{16, 15, 17, 0}
		for _, skip := range []float64{0, 1} {
			want := []float64{1, 1.5, 0.5, -1.5}
			if skip == 1 {
				want = x
			}
			p, master := u.p.buffer(nans(4)), u.p.computed().buffer(x)
			if skip == 1 {
				p = u.p.buffer(x)
			}
			u.run("level", 1, 4, p, master, u.g.buffer(got), elems[1].buffer([]float64{1, 1, skip}), rate,
				float64(experts), float64(choices), nil, nil, int64(4))
			u.p.same(u.T, "bias", u.p.values(p), want)
			u.p.computed().same(u.T, "master", u.p.computed().values(master), want)
		}
	})
}
