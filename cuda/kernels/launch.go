package kernels

// maxBlocks limits the blocks of a grid whose blocks iterate: several times what a device runs
// concurrently.
const maxBlocks = 4096

// rowwise assigns a warp to a short row, with eight warps per block, and a block to a long row.
func rowwise(rows, cols int) Launch {
	if cols <= 1024 {
		return Launch{Grid: [3]int{blocks(rows, 8), 1, 1}, Block: [3]int{32, 8, 1}}
	}
	return Launch{Grid: [3]int{blocks(rows, 1), 1, 1}, Block: [3]int{256, 1, 1}}
}

// longRows assigns 1,024 threads to a row that is long enough for them, else the same as rowwise. Two such
// blocks fill a multiprocessor. Fewer rows are in progress at a time, so the second pass over a row of logits
// finds it in the L2 cache: 264 rows of 50,304 bf16 numbers are 27 MB of an H100's 50 MB.
func longRows(rows, cols int) Launch {
	if cols < 8192 {
		return rowwise(rows, cols)
	}
	return Launch{Grid: [3]int{blocks(rows, 1), 1, 1}, Block: [3]int{1024, 1, 1}}
}

// Rowwise is the geometry of a fused group's kernel that sums over rows. Wide is that of one that does not;
// there, blocks share long rows.
func Rowwise(rows, cols int) Launch { return rowwise(rows, cols) }

// Wide returns a geometry in which blocks share long rows. See Rowwise.
func Wide(rows, cols int) Launch {
	l := rowwise(rows, cols)
	l.Grid[1] = min(max(ceil(cols, l.Block[0]*8), 1), max(maxBlocks/l.Grid[0], 1))
	return l
}

// flat assigns a thread to each pack of an array, up to a reasonable number of blocks.
func flat(rows, cols int) Launch {
	return Launch{Grid: [3]int{Blocks(cols), 1, 1}, Block: [3]int{256, 1, 1}}
}

// Blocks returns the number of blocks of a flat array of n elements. A sum over them needs as many numbers
// of scratch.
func Blocks(n int) int { return min(max(ceil(n, 4*256), 1), 1024) }

// tilewise assigns a block to each tile of 64 rows of 64 elements.
func tilewise(rows, cols int) Launch {
	return Launch{Grid: [3]int{blocks(max(ceil(rows, 64), 1)*max(ceil(cols, 64), 1), 1), 1, 1},
		Block: [3]int{256, 1, 1}}
}

// single has one block.
func single(rows, cols int) Launch {
	return Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{256, 1, 1}}
}

// blockwise assigns a block of 8 warps to each of rows units. scanwise assigns one that ranks 256 choices
// at a time.
func blockwise(rows, cols int) Launch {
	return Launch{Grid: [3]int{blocks(rows, 1), 1, 1}, Block: [3]int{32, 8, 1}}
}

func scanwise(rows, cols int) Launch {
	return Launch{Grid: [3]int{blocks(rows, 1), 1, 1}, Block: [3]int{256, 1, 1}}
}

// routewise assigns a warp to a row, with only two warps per block, because scores need shared memory.
func routewise(rows, cols int) Launch {
	return Launch{Grid: [3]int{blocks(rows, 2), 1, 1}, Block: [3]int{32, 2, 1}}
}

// attentionwise assigns a block of four warps to each of rows tiles. The grid's second dim has the chunks
// of 128 of cols columns.
func attentionwise(rows, cols int) Launch {
	return Launch{Grid: [3]int{blocks(rows, 1), min(max(ceil(cols, 128), 1), 1024), 1}, Block: [3]int{32, 4, 1}}
}

// columnwise assigns a block to the columns of 32 threads, 8 rows at a time. The grid's second dim has
// parts of the rows: as many as give each some work, and the device enough blocks. A thread has at least
// one column, so that a grid for one column each suffices for every type.
func columnwise(rows, cols int) Launch {
	return Launch{Grid: [3]int{max(ceil(cols, 32), 1), Parts(rows), 1}, Block: [3]int{32, 8, 1}}
}

// Parts returns the number of parts into which columnwise divides rows. Unless it is 1, a sum over them
// needs as many rows of scratch.
func Parts(rows int) int { return min(max(rows/128, 1), 64) }

// gradwise is rowwise with at most as many blocks as [NormGrads] has parts.
func gradwise(rows, cols int) Launch {
	l := rowwise(rows, cols)
	l.Grid[0] = min(l.Grid[0], maxNormParts)
	return l
}

// maxNormParts limits the parts of a norm's gradients. A second sum over fewer than 256 parts needs one launch, and
// 240 blocks are nearly two for each multiprocessor of an H100.
const maxNormParts = 240

// NormGrads returns which kernel computes all gradients of a norm over rows: the number of packs per thread at the
// end of its name, and the number of parts that its sums over rows have. packs is 0 if no kernel can, because a row
// is too long or has no whole number of packs.
func NormGrads(rows, cols int) (packs, parts int) {
	l := gradwise(rows, cols)
	packs = ceil(cols, 8*l.Block[0])
	if cols%8 != 0 || packs > 4 {
		return 0, 0
	}
	return packs, l.Grid[0]
}

// blocks returns the number of blocks for n units, each units per block, within limits.
func blocks(n, each int) int { return min(max(ceil(n, each), 1), maxBlocks) }

func ceil(n, each int) int { return (n + each - 1) / each }
