package main

import (
	"sync"
	"time"

	"github.com/planc-dev/planc/runtime/cpu"
)

// peak is how many GFLOP/s the cores do in multiply-adds whose operands stay in registers: the best of several tries.
func peak(threads int) float64 {
	loop, flops := fma()
	if loop == nil {
		return 0
	}
	const steps = 1 << 22
	best := 0.0
	for range 8 {
		start := time.Now()
		var all sync.WaitGroup
		for range threads {
			all.Go(func() { loop(steps) })
		}
		all.Wait()
		best = max(best, float64(threads)*flops*steps/time.Since(start).Seconds()/1e9)
	}
	return best
}

// kept is what they keep up over a second or so: a core whose clock wanders, or that others borrow, is below its best.
func kept(threads int) float64 {
	loop, flops := fma()
	if loop == nil {
		return 0
	}
	const steps = 80 << 22
	start := time.Now()
	var all sync.WaitGroup
	for range threads {
		all.Go(func() { loop(steps) })
	}
	all.Wait()
	return float64(threads) * flops * steps / time.Since(start).Seconds() / 1e9
}

// fma is the loop of the ISA in use, and a step's flops.
func fma() (loop func(steps uint64), flops float64) {
	switch cpu.InUse() {
	case cpu.AVX512, cpu.AMX: // AMX has no multiply-adds of float32: what is split for it can exceed the limit
		return fma512, 24 * 16 * 2
	case cpu.AVX2:
		return fma256, 12 * 8 * 2
	}
	return nil, 0
}
