package cpu

// A tuning is how products and attention differ by the processor's maker, as was measured (bench/gemm/README.md). Not a
// measurement where a program runs decides, so that all runs on a machine make the same bits.
type tuning struct {
	second int  // a strip's: into which cache c is asked for
	packed int  // terms of a chunk, at most, where op(a) is packed and there are several
	heads  bool // attention asks for the next head's rows while it works on one
	wide   bool // AVX-512 multiplies float32 in panels of three vectors of columns, which load less, not of two
}

var tuned = tuningOf(isIntel())

// tuningOf is Intel's, as measured on family 6, model 167, whose first cache waits for few lines at a time and whose
// second has 2 MiB; or that of AMD's Zen 5.
func tuningOf(intel bool) tuning {
	if intel {
		return tuning{second: 1, packed: 256, wide: true}
	}
	return tuning{packed: manyTerms, heads: true}
}
