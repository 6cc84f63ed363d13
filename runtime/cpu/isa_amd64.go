package cpu

import "github.com/planc-dev/planc/runtime/vec"

// detect queries the processor for its best ISA, and whether it multiplies bfloat16 (AVX512-BF16).
func detect() (isa ISA, bf16 bool) {
	const (
		fma, osxsave, f16c               = 1 << 12, 1 << 27, 1 << 29 // leaf 1, ecx
		tiles                            = 1<<22 | 1<<24             // leaf 7, edx: AMX-BF16 and AMX-TILE
		savedTiles                       = 1<<17 | 1<<18             // XCR0: tile configuration and data
		avx2, bmi2, f, dq, bw, vl        = 1 << 5, 1 << 8, 1 << 16, 1 << 17, 1 << 30, 1 << 31
		saved256, saved512        uint32 = 0x6, 0xe6 // XCR0: xmm and ymm; also the mask registers, zmm
	)
	if most, _, _, _ := cpuid(0, 0); most < 7 {
		return Portable, false
	}
	if _, _, c, _ := cpuid(1, 0); c&fma == 0 || c&osxsave == 0 || c&f16c == 0 {
		return Portable, false
	}
	saved, _ := xgetbv()
	more, b, _, d := cpuid(7, 0)
	if saved&saved256 != saved256 || b&avx2 == 0 || b&bmi2 == 0 {
		return Portable, false
	}
	if all := uint32(f | dq | bw | vl); saved&saved512 != saved512 || b&all != all {
		return AVX2, false
	}
	if more >= 1 {
		a, _, _, _ := cpuid(7, 1)
		bf16 = a&(1<<5) != 0
	}
	if bf16 && saved&savedTiles == savedTiles && d&tiles == tiles && askForTiles() {
		return AMX, bf16
	}
	return AVX512, bf16
}

// isIntel reports whether the processor's vendor is GenuineIntel.
func isIntel() bool {
	_, b, c, d := cpuid(0, 0)
	return b == 0x756e6547 && d == 0x49656e69 && c == 0x6c65746e // "Genu", "ineI", "ntel"
}

// numbersCores reports whether there is RDPID (leaf 7, ecx). RDTSCP, which older processors have, waits
// until all earlier instructions are done.
var numbersCores = func() bool {
	if most, _, _, _ := cpuid(0, 0); most < 7 {
		return false
	}
	_, _, c, _ := cpuid(7, 0)
	return c&(1<<22) != 0
}()

// core returns a number of the core that the caller runs on at present, or 0 if the processor does not
// tell.
func core() uint32 {
	if !numbersCores {
		return 0
	}
	return rdpid() & 0xfff
}

// faster has, for each ISA, the function that puts its kernels into tables for the previous ISA.
var faster = [numISAs]func(*Kernels[float32], *Kernels[float64]){
	AVX2:   useAVX2,
	AVX512: useAVX512,
	AMX:    useAMX,
}

func useAVX2(t32 *Kernels[float32], t64 *Kernels[float64]) {
	useVectors(t32, vec.AVX2)
	engine32 = &engine[float32]{rows: 6, cols: 16, multiply: gemmF32AVX2}
	engine64 = &engine[float64]{rows: 6, cols: 8, multiply: gemmF64AVX2}
	t32.MatMul, t64.MatMul = matMulFast[float32], matMulFast[float64]
	t32.MatMulOn, t64.MatMulOn = matMulOnFast[float32], matMulOnFast[float64]
	t32.MatMulThen, t64.MatMulThen = matMulThenFast[float32], matMulThenFast[float64]
}

func useAVX512(t *Kernels[float32], _ *Kernels[float64]) {
	useVectors(t, vec.AVX512)
	engine32 = &engine[float32]{rows: 12, cols: 32, multiply: gemmF32AVX512, packRows: packRowsAVX512,
		packFour: packFourAVX512, packCols: packColumnsAVX512}
	if tuned.wide {
		wide := *engine32
		wide.rows, wide.cols, wide.multiply = 8, 48, gemmF32AVX512Wide
		engine32.wide = &wide
	}
	if hasBF16 {
		engine16 = &engine[float32]{rows: 12, cols: 32, multiply: gemmBF16AVX512, packCols: packColumnsAVX512,
			pairs: true, packPairs: packPairsAVX512, packFourPairs: packFourPairsAVX512}
	}
	if pairsPay {
		t.MatMulBF16, t.MatMulRoundBF16 = matMulPairs, matMulPairsRounded
	}
	engine64 = &engine[float64]{rows: 12, cols: 16, multiply: gemmF64AVX512, packRows: packRowsAVX512,
		packFour: packFourAVX512}
}

// useAMX uses tiles. Cores with tiles lose time by copying rows that share sets of the first-level cache
// (bench/gemm/README.md); Zen 5 gains.
func useAMX(t *Kernels[float32], _ *Kernels[float64]) {
	t.MatMulBF16, t.MatMulRoundBF16 = matMulPairs, matMulPairsRounded
	t.AttentionBF16, t.AttentionGradBF16 = attentionTiles, attentionGradTiles
	engine32.crowds = true
	if engine32.wide != nil {
		engine32.wide.crowds = true
	}
	e := *engine16
	e.rows, e.multiply, e.together, e.narrowRows = 2*tileRows, gemmTiles, true, narrowRowsBF16
	engine16 = &e
	engine32 = &engine[float32]{rows: 2 * tileRows, cols: 2 * tileCols, multiply: gemmParts,
		packCols: packColumnsAVX512, split: splitRowsAVX512, plain: engine32}
}
