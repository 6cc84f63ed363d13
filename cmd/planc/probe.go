package main

import (
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// probeResult is what a core of this machine did with the runtime's own kernels: each figure the best of many calls, so
// that other work on the machine counts as little as it can.
type probeResult struct {
	ISA       string
	Single    []gemmProbe              // in f32, by shape
	Double    float64                  // flops a second of a large product in f64
	Half      float64                  // and in bf16
	Call      costmodel.Seconds        // of a kernel that has nearly nothing to do
	Memory    costmodel.BytesPerSecond // read and written by a copy that no cache holds
	Ranks     int                      // of the collectives
	AllReduce costmodel.BytesPerSecond // of one of 16 MiB: bytes that a rank sends
	Hop       costmodel.Seconds        // of one of 4 KiB, for each of its hops
}

// gemmProbe is a matrix product and how fast it was.
type gemmProbe struct {
	costmodel.GEMM
	Transposed bool // the left operand is
	FlopsPerS  float64
}

// probedShapes are products of small, medium and large steps; a third has the left operand transposed, as gradients of
// weights do.
var probedShapes = []gemmProbe{
	{GEMM: costmodel.GEMM{M: 64, N: 64, K: 64}}, {GEMM: costmodel.GEMM{M: 256, N: 64, K: 256}},
	{GEMM: costmodel.GEMM{M: 64, N: 256, K: 256}, Transposed: true},
	{GEMM: costmodel.GEMM{M: 768, N: 512, K: 128}}, {GEMM: costmodel.GEMM{M: 512, N: 512, K: 512}},
	{GEMM: costmodel.GEMM{M: 384, N: 384, K: 1024}, Transposed: true},
}

// probedBF16 is the product in bf16.
var probedBF16 = costmodel.GEMM{M: 512, N: 512, K: 512}

// probeTime is how long a figure is measured, but for its first call, which fills caches.
const probeTime = 60 * time.Millisecond

// probe measures this machine in about a second, on one core but for the collectives.
func probe(cores int) probeResult {
	p := probeResult{ISA: cpu.InUse().String(), Ranks: min(max(2, cores), 8)}
	for _, s := range probedShapes {
		s.FlopsPerS = measureGEMM[float32](s)
		p.Single = append(p.Single, s)
	}
	p.Double = measureGEMM[float64](gemmProbe{GEMM: costmodel.GEMM{M: 384, N: 384, K: 384}})
	p.Half = measureGEMMBF16(probedBF16)
	least := gemmProbe{GEMM: costmodel.GEMM{M: 16, N: 16, K: 16}}
	p.Call = costmodel.Seconds(flopsOf(least.GEMM) / measureGEMM[float32](least))
	const elems = 16 << 20
	to, from := make([]float32, elems), testValues[float32](elems)
	p.Memory = costmodel.BytesPerSecond(8 * elems / bestSeconds(probeTime, func() { copy(to, from) }))
	n := float64(p.Ranks)
	p.Hop = costmodel.Seconds(measureAllReduce(p.Ranks, 1<<10) / (2 * (n - 1)))
	const large = 4 << 20
	p.AllReduce = costmodel.BytesPerSecond(2 * (n - 1) / n * 4 * large / measureAllReduce(p.Ranks, large))
	return p
}

func flopsOf(g costmodel.GEMM) float64 { return 2 * g.M * g.N * g.K }

// measureGEMM is how many flops a second a product does.
func measureGEMM[F cpu.Float](s gemmProbe) float64 {
	m, n, k := int(s.M), int(s.N), int(s.K)
	a, b, c := testValues[F](m*k), testValues[F](k*n), make([]F, m*n)
	t := cpu.Table[F]()
	return flopsOf(s.GEMM) / bestSeconds(probeTime, func() { t.MatMul(c, a, b, m, n, k, s.Transposed, false, false) })
}

// measureGEMMBF16 is how many flops a second a product in bf16 does.
func measureGEMMBF16(g costmodel.GEMM) float64 {
	m, n, k := int(g.M), int(g.N), int(g.K)
	a, b, c := make([]num.BF16, m*k), make([]num.BF16, k*n), make([]num.BF16, m*n)
	num.Store(a, testValues[float32](m*k))
	num.Store(b, testValues[float32](k*n))
	t := cpu.Table[float32]()
	return flopsOf(g) / bestSeconds(probeTime, func() { t.MatMulRoundBF16(c, a, b, m, n, k, false, false) })
}

// testValues are n of them, none subnormal.
func testValues[F cpu.Float](n int) []F {
	x := make([]F, n)
	for i := range x {
		x[i] = F(i%17)/17 - 0.5
	}
	return x
}

// bestSeconds calls f for a while and returns the least seconds that a call took; short calls are timed many together.
func bestSeconds(during time.Duration, f func()) float64 {
	const together = 100 * time.Microsecond
	f()
	least := math.Inf(1)
	for begin := time.Now(); time.Since(begin) < during; {
		start, n := time.Now(), 0
		for time.Since(start) < together {
			f()
			n++
		}
		least = min(least, time.Since(start).Seconds()/float64(n))
	}
	return least
}

// measureAllReduce is the seconds of an all-reduce of elems f32 between ranks that are goroutines, as the runtime's
// are. A rank that arrives last waits least, so that the slowest's time is the collective's.
func measureAllReduce(ranks, elems int) float64 {
	w := comm.NewWorld(comm.Mesh{{Name: "dp", Size: ranks}}, 0)
	const rounds = 24
	return maxOverRanks(ranks, func(r int) float64 {
		best, buf := math.Inf(1), testValues[float32](elems)
		g, err := w.Join(r, []string{"dp"}, comm.Main)
		for i := 0; i < rounds && err == nil; i++ {
			start := time.Now()
			err = comm.AllReduce(g, buf, comm.Sum)
			if err == nil && i > 0 {
				best = min(best, time.Since(start).Seconds())
			}
		}
		if err != nil {
			panic("planc: an all-reduce in memory failed: " + err.Error())
		}
		return best
	})
}

// maxOverRanks is the largest of what n ranks come to, each a goroutine. A panic of one is the caller's, who alone can
// recover from it; ranks that wait for that one are left behind.
func maxOverRanks(n int, do func(rank int) float64) (largest float64) {
	results, faults := make(chan float64, n), make(chan string, n)
	for r := range n {
		go func() {
			defer func() {
				if x := recover(); x != nil {
					faults <- fmt.Sprintf("%v\n%s", x, debug.Stack())
				}
			}()
			results <- do(r)
		}()
	}
	for range n {
		select {
		case text := <-faults:
			panic(text)
		case v := <-results:
			largest = max(largest, v)
		}
	}
	return largest
}
