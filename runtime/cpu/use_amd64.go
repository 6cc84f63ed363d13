package cpu

import (
	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/vec"
)

// faster has, for each ISA, the function that puts its kernels into tables for the previous ISA.
var faster = [AMX + 1]func(*Kernels[float32], *Kernels[float64]){
	AVX2:   useAVX2,
	AVX512: useAVX512,
	AMX:    useAMX,
}

func useAVX2(t32 *Kernels[float32], t64 *Kernels[float64]) {
	useVectors(t32, vec.AVX2)
	engine32 = &engine[float32]{rows: 6, cols: 16, multiply: asm.GemmF32AVX2}
	engine64 = &engine[float64]{rows: 6, cols: 8, multiply: asm.GemmF64AVX2}
	t32.MatMul, t64.MatMul = matMulFast[float32], matMulFast[float64]
	t32.MatMulOn, t64.MatMulOn = matMulOnFast[float32], matMulOnFast[float64]
	t32.MatMulThen, t64.MatMulThen = matMulThenFast[float32], matMulThenFast[float64]
}

func useAVX512(t *Kernels[float32], _ *Kernels[float64]) {
	useVectors(t, vec.AVX512)
	engine32 = &engine[float32]{rows: 12, cols: 32, multiply: asm.GemmF32AVX512, packRows: asm.PackRowsAVX512,
		packFour: asm.PackFourAVX512, packCols: asm.PackColumnsAVX512}
	if tuned.wide {
		wide := *engine32
		wide.rows, wide.cols, wide.multiply = 8, 48, asm.GemmF32AVX512Wide
		engine32.wide = &wide
	}
	if asm.HasBF16() {
		engine16 = &engine[float32]{rows: 12, cols: 32, multiply: asm.GemmBF16AVX512, packCols: asm.PackColumnsAVX512,
			pairs: true, packPairs: asm.PackPairsAVX512, packFourPairs: asm.PackFourPairsAVX512}
	}
	if pairsPay {
		t.MatMulBF16, t.MatMulRoundBF16 = matMulPairs, matMulPairsRounded
	}
	engine64 = &engine[float64]{rows: 12, cols: 16, multiply: asm.GemmF64AVX512, packRows: asm.PackRowsAVX512,
		packFour: asm.PackFourAVX512}
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
	e.rows, e.multiply, e.together, e.narrowRows = 2*asm.TileRows, asm.GemmTiles, true, asm.NarrowRowsBF16
	engine16 = &e
	engine32 = &engine[float32]{rows: 2 * asm.TileRows, cols: 2 * asm.TileCols, multiply: asm.GemmParts,
		packCols: asm.PackColumnsAVX512, split: asm.SplitRowsAVX512, plain: engine32}
}
