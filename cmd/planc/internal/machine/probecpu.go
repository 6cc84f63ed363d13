package machine

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

// probeResult holds rates of one core of this machine, measured with the runtime's own kernels. Each figure is the best
// of many calls, to reduce the influence of other work on the machine.
type probeResult struct {
	ISA       string
	Single    []gemmProbe              // f32 matmuls by shape
	Double    float64                  // FLOP/s of a large f64 matmul
	Half      float64                  // FLOP/s of a large bf16 matmul
	Call      costmodel.Seconds        // time of a kernel with almost no work
	Memory    costmodel.BytesPerSecond // bytes read plus bytes written by a copy larger than the caches
	Ranks     int                      // ranks of the collectives
	AllReduce costmodel.BytesPerSecond // bytes that a rank sends in an all-reduce of 16 MiB
	Hop       costmodel.Seconds        // time per hop of an all-reduce of 4 KiB
}

// gemmProbe is a matmul and its measured rate.
type gemmProbe struct {
	costmodel.GEMM
	Transposed bool // the left operand is transposed
	FlopsPerS  float64
}

// probedShapes lists matmuls of small, medium and large models. A third has a transposed left operand, like the
// gradients of weights.
var probedShapes = []gemmProbe{
	{GEMM: costmodel.GEMM{M: 64, N: 64, K: 64}}, {GEMM: costmodel.GEMM{M: 256, N: 64, K: 256}},
	{GEMM: costmodel.GEMM{M: 64, N: 256, K: 256}, Transposed: true},
	{GEMM: costmodel.GEMM{M: 768, N: 512, K: 128}}, {GEMM: costmodel.GEMM{M: 512, N: 512, K: 512}},
	{GEMM: costmodel.GEMM{M: 384, N: 384, K: 1024}, Transposed: true},
}

// probedBF16 is the shape of the bf16 matmul.
var probedBF16 = costmodel.GEMM{M: 512, N: 512, K: 512}

// probeTime is the duration of the measurement of one figure, without its first call, which fills caches.
const probeTime = 60 * time.Millisecond

// probe measures this machine in about a second. Only collectives use more than one core.
func probe(cores int) probeResult {
	p := probeResult{ISA: cpu.InUse().String(), Ranks: min(max(2, cores), 8)}
	for _, s := range probedShapes {
		s.FlopsPerS = measureGEMM[float32](s)
		p.Single = append(p.Single, s)
	}
	p.Double = measureGEMM[float64](gemmProbe{GEMM: costmodel.GEMM{M: 384, N: 384, K: 384}})
	p.Half = measureGEMMBF16(probedBF16)
	tiny := gemmProbe{GEMM: costmodel.GEMM{M: 16, N: 16, K: 16}}
	p.Call = costmodel.Seconds(flopsOf(tiny.GEMM) / measureGEMM[float32](tiny))
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

// measureGEMM measures the FLOP/s of a matmul.
func measureGEMM[F cpu.Float](s gemmProbe) float64 {
	m, n, k := int(s.M), int(s.N), int(s.K)
	a, b, c := testValues[F](m*k), testValues[F](k*n), make([]F, m*n)
	t := cpu.Table[F]()
	return flopsOf(s.GEMM) / bestSeconds(probeTime, func() { t.MatMul(c, a, b, m, n, k, s.Transposed, false, false) })
}

// measureGEMMBF16 measures the FLOP/s of a bf16 matmul.
func measureGEMMBF16(g costmodel.GEMM) float64 {
	m, n, k := int(g.M), int(g.N), int(g.K)
	a, b, c := make([]num.BF16, m*k), make([]num.BF16, k*n), make([]num.BF16, m*n)
	num.Store(a, testValues[float32](m*k))
	num.Store(b, testValues[float32](k*n))
	t := cpu.Table[float32]()
	return flopsOf(g) / bestSeconds(probeTime, func() { t.MatMulRoundBF16(c, a, b, m, n, k, false, false) })
}

// testValues returns n numbers, none of them subnormal.
func testValues[F cpu.Float](n int) []F {
	x := make([]F, n)
	for i := range x {
		x[i] = F(i%17)/17 - 0.5
	}
	return x
}

// bestSeconds calls f repeatedly for a given duration and returns the minimal seconds of a call. Short calls are timed
// in batches.
func bestSeconds(duration time.Duration, f func()) float64 {
	const minBatch = 100 * time.Microsecond
	f()
	best := math.Inf(1)
	for begin := time.Now(); time.Since(begin) < duration; {
		start, n := time.Now(), 0
		for time.Since(start) < minBatch {
			f()
			n++
		}
		best = min(best, time.Since(start).Seconds()/float64(n))
	}
	return best
}

// measureAllReduce returns the seconds of an all-reduce of elems f32 between ranks that are goroutines, as in the
// runtime. The rank that arrives last waits least, so the time of the collective is that of the slowest rank.
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

// maxOverRanks runs n ranks as goroutines and returns the largest of their results. If a rank panics, the caller panics
// too, because only the caller can recover; ranks that wait for that rank are leaked.
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
