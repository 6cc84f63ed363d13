package kernels

// The most blocks of a grid whose blocks take as many turns as it needs: several times what a device runs at once.
const mostBlocks = 4096

// rowwise has a warp for a short row, eight of them a block, and a block for a long one.
func rowwise(rows, cols int) Launch {
	if cols <= 1024 {
		return Launch{Grid: [3]int{blocks(rows, 8), 1, 1}, Block: [3]int{32, 8, 1}}
	}
	return Launch{Grid: [3]int{blocks(rows, 1), 1, 1}, Block: [3]int{256, 1, 1}}
}

// Rowwise is the geometry of a fused group's kernel that sums over rows, Wide that of one that does not: there blocks
// share long rows.
func Rowwise(rows, cols int) Launch { return rowwise(rows, cols) }

// Wide is described beside Rowwise.
func Wide(rows, cols int) Launch {
	l := rowwise(rows, cols)
	l.Grid[1] = min(max(ceil(cols, l.Block[0]*8), 1), max(mostBlocks/l.Grid[0], 1))
	return l
}

// flat has a thread for each pack of an array, as far as that gives no more blocks than are good.
func flat(rows, cols int) Launch {
	return Launch{Grid: [3]int{Blocks(cols), 1, 1}, Block: [3]int{256, 1, 1}}
}

// Blocks is how many blocks a flat array of n elements has: what is summed over them needs as many numbers of scratch.
func Blocks(n int) int { return min(max(ceil(n, 4*256), 1), 1024) }

// tilewise has a block for each tile of 64 rows of 64 elements.
func tilewise(rows, cols int) Launch {
	return Launch{Grid: [3]int{blocks(max(ceil(rows, 64), 1)*max(ceil(cols, 64), 1), 1), 1, 1},
		Block: [3]int{256, 1, 1}}
}

// single is one block.
func single(rows, cols int) Launch {
	return Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{256, 1, 1}}
}

// blockwise has a block of 8 warps for each of rows units, and scanwise one that ranks 256 choices at a time.
func blockwise(rows, cols int) Launch {
	return Launch{Grid: [3]int{blocks(rows, 1), 1, 1}, Block: [3]int{32, 8, 1}}
}

func scanwise(rows, cols int) Launch {
	return Launch{Grid: [3]int{blocks(rows, 1), 1, 1}, Block: [3]int{256, 1, 1}}
}

// routewise has a warp a row, two of them a block: scores take shared memory.
func routewise(rows, cols int) Launch {
	return Launch{Grid: [3]int{blocks(rows, 2), 1, 1}, Block: [3]int{32, 2, 1}}
}

// attentionwise has a block of four warps for each of rows tiles, and blocks across for cols columns, in chunks of 128.
func attentionwise(rows, cols int) Launch {
	return Launch{Grid: [3]int{blocks(rows, 1), min(max(ceil(cols, 128), 1), 1024), 1}, Block: [3]int{32, 4, 1}}
}

// columnwise has a block for the columns of 32 threads, 8 rows at a time, and parts of the rows across: as many as give
// each some work, and the device enough blocks. A thread has at least one column, so that a grid for one each has
// enough in every type.
func columnwise(rows, cols int) Launch {
	return Launch{Grid: [3]int{max(ceil(cols, 32), 1), Parts(rows), 1}, Block: [3]int{32, 8, 1}}
}

// Parts is into how many parts columnwise cuts rows: what is summed over them needs so many rows of scratch, unless it
// is 1.
func Parts(rows int) int { return min(max(rows/128, 1), 64) }

// blocks is how many blocks of so many units each n units need, within bounds.
func blocks(n, each int) int { return min(max(ceil(n, each), 1), mostBlocks) }

func ceil(n, each int) int { return (n + each - 1) / each }
