package main

import (
	"sync"
	"time"

	"github.com/planc-dev/planc/runtime/cpu"
)

// peak returns the GFLOP/s of multiply-adds whose operands stay in registers: the best of several tries.
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

// sustained returns the rate that the cores sustain for about a second. It is lower than the peak if the clock varies,
// or if other processes use the cores.
func sustained(threads int) float64 {
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

// fma returns the loop for the instruction set in use, and the flops of one step.
func fma() (loop func(steps uint64), flops float64) {
	switch cpu.InUse() {
	case cpu.AVX512, cpu.AMX: // AMX has no float32 multiply-adds: GEMMs that split float32 for it can exceed this limit
		return fma512, 24 * 16 * 2
	case cpu.AVX2:
		return fma256, 12 * 8 * 2
	}
	return nil, 0
}
