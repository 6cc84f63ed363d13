package gemm

import "github.com/planc-dev/planc/runtime/cpu/asm"

// tuning is how matmuls differ by the processor's vendor, according to measurements
// (bench/gemm/README.md). Nothing is measured where a program runs, so that all runs on a machine give the
// same bits.
type tuning struct {
	second int  // 1: c is prefetched into the second-level cache; 0: into the first
	packed int  // maximum terms of a chunk if op(a) is packed and there are several chunks
	wide   bool // AVX-512 multiplies float32 in panels of three vectors of columns, which load less, not of two
}

var tuned = tuningOf(asm.IsIntel())

// tuningOf returns the tuning for Intel or AMD. Intel's was measured on family 6, model 167, whose
// first-level cache handles few outstanding lines and whose second-level cache has 2 MiB; AMD's on Zen 5.
func tuningOf(intel bool) tuning {
	if intel {
		return tuning{second: 1, packed: 256, wide: true}
	}
	return tuning{packed: manyTerms}
}

// TuneFor sets the tuning for Intel's processors or for others. By default the processor decides. No matmul
// may run meanwhile, and Use must follow.
func TuneFor(intel bool) { tuned = tuningOf(intel) }
