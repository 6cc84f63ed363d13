package gemm

import "github.com/planc-dev/planc/runtime/cpu/asm"

// faster has, for each ISA, the function that replaces the engines of the previous ISA.
var faster = [asm.AMX + 1]func(){asm.AVX2: useAVX2, asm.AVX512: useAVX512, asm.AMX: useAMX}

func useAVX2() {
	engine32 = &engine[float32]{rows: 6, cols: 16, multiply: asm.GemmF32AVX2}
	engine64 = &engine[float64]{rows: 6, cols: 8, multiply: asm.GemmF64AVX2}
}

func useAVX512() {
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
	engine64 = &engine[float64]{rows: 12, cols: 16, multiply: asm.GemmF64AVX512, packRows: asm.PackRowsAVX512,
		packFour: asm.PackFourAVX512}
}

// useAMX uses tiles. Cores with tiles lose time by copying rows that share sets of the first-level cache
// (bench/gemm/README.md); Zen 5 gains.
func useAMX() {
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
