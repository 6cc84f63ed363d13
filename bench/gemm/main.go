package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

var (
	threads = flag.Int("threads", 1, "threads of both")
	rounds  = flag.Int("rounds", 5, "turns of each on each shape")
	turn    = flag.Duration("turn", 30*time.Millisecond, "how long a turn takes, about")
	only    = flag.String("only", "", "shapes whose name contains this")
	isa     = flag.String("cpu-isa", "auto", "instructions of ours")
	alone   = flag.Bool("alone", false, "no peer")
	bf16    = flag.Bool("bf16", false, "ours multiply bfloat16, with sums in float32")
)

func main() {
	flag.Parse()
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "gemm:", err)
		os.Exit(1)
	}
}

func measure() error {
	set, err := cpu.FindISA(*isa)
	if err != nil {
		return err
	}
	cpu.Use(set)
	runtime.GOMAXPROCS(*threads)
	cpu.Threads(1, *threads)
	var p *peer
	if !*alone {
		p, err = startPeer(*threads)
		if err != nil {
			return err
		}
		fmt.Print("peer: ", p.name)
	}
	limit := peak(*threads)
	fmt.Printf("planc: %v, %d threads; limit %.0f GFLOP/s, sustained %.0f\n", set, *threads, limit, sustained(*threads))
	fmt.Printf("%-14s %18s %9s %9s %7s %7s  %s\n", "", "m n k", "GFLOP/s", "peer", "share", "ratio",
		"min-max of the ratio")
	logs := map[string][]float64{}
	for _, s := range append(cubes(), shapes()...) {
		if !strings.Contains(s.String(), *only) {
			continue
		}
		r, err := compare(p, s)
		if err != nil {
			return err
		}
		r.print(s, limit)
		logs[s.model] = append(logs[s.model], math.Log(r.ratio))
		if s.model != "cube" {
			logs["all"] = append(logs["all"], math.Log(r.ratio))
		}
	}
	for _, name := range []string{"cube", "nano", "mid", "gpt2", "all"} {
		if n := len(logs[name]); n > 0 {
			fmt.Printf("geometric mean %-5s %.3f over %d\n", name, math.Exp(sum(logs[name])/float64(n)), n)
		}
	}
	return nil
}

// result has the median GFLOP/s of both, the median ratio of planc's rate to OpenBLAS's, and its minimum and maximum
// over the rounds.
type result struct{ ours, peer, ratio, smallest, largest float64 }

func (r result) print(s shape, limit float64) {
	fmt.Printf("%-14v %18s %9.1f %9.1f %6.1f%% %7.3f  %.3f-%.3f\n", s, fmt.Sprint(s.m, " ", s.n, " ", s.k),
		r.ours, r.peer,
		100*r.ours/limit, r.ratio, r.smallest, r.largest)
}

// compare times both on a shape, in alternating turns.
func compare(p *peer, s shape) (r result, err error) {
	o := newOurs(s)
	reps := max(1, int(turn.Seconds()/o.time(1)))
	reps = max(1, int(turn.Seconds()/o.time(reps)*float64(reps)))
	var ours, peers, ratios []float64
	for range *rounds {
		a := o.time(reps) / float64(reps)
		ours = append(ours, a)
		if p == nil {
			continue
		}
		time.Sleep(2 * time.Millisecond) // planc's threads go to sleep
		b, middle, err := p.time(s, reps)
		if err != nil {
			return r, err
		}
		if want := float64(o.c[s.m*s.n/2]); math.Abs(middle-want) > 1e-3*(1+math.Abs(want)) {
			return r, fmt.Errorf("%v: element %v of OpenBLAS, %v of planc", s, middle, want)
		}
		b /= float64(reps)
		peers, ratios = append(peers, b), append(ratios, b/a)
		if *threads > 1 {
			time.Sleep(150 * time.Millisecond) // OpenBLAS's threads spin for a while
		}
	}
	r = result{ours: s.flops() / median(ours) / 1e9, ratio: 1}
	if p != nil {
		r.peer, r.ratio = s.flops()/median(peers)/1e9, median(ratios)
		r.smallest, r.largest = slices.Min(ratios), slices.Max(ratios)
	}
	return r, nil
}

// ours is a GEMM by package cpu with its operands.
type ours struct {
	shape
	a, b, c []float32
	ah, bh  []num.BF16
}

func newOurs(s shape) *ours {
	fill := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(i%17)/16 - 0.5
		}
		return x
	}
	o := &ours{shape: s, a: fill(s.m * s.k), b: fill(s.k * s.n), c: fill(s.m * s.n)}
	o.ah, o.bh = make([]num.BF16, len(o.a)), make([]num.BF16, len(o.b))
	num.Store(o.ah, o.a)
	num.Store(o.bh, o.b)
	return o
}

func (o *ours) multiply() {
	t := cpu.Table[float32]()
	if *bf16 {
		t.MatMulBF16(o.c, o.ah, o.bh, o.m, o.n, o.k, o.ta, o.tb, false)
	} else {
		t.MatMul(o.c, o.a, o.b, o.m, o.n, o.k, o.ta, o.tb, false)
	}
}

// time returns the seconds of so many GEMMs, after one that is not timed.
func (o *ours) time(reps int) float64 {
	o.multiply()
	start := time.Now()
	for range reps {
		o.multiply()
	}
	return time.Since(start).Seconds()
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}
