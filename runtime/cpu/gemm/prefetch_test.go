package gemm

import (
	"testing"
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
)

// While a block of op(a), transposed, is multiplied, every line of every term of the next block is
// prefetched, unless there are too few panels. No line is prefetched twice, and each is before the block
// ends.
func TestNextBlockIsForeseen(t *testing.T) {
	each(t, func(t *testing.T) {
		if engine32 == nil || engine32.split != nil {
			t.Skip("there is no engine that asks ahead")
		}
		for _, z := range []struct{ m, n, k int }{
			{1536, 384, 2048}, {384, 1536, 2048}, {3072, 768, 256}, {5027, 768, 256}, {1001, 512, 768},
			{1999, 900, 1100},
		} {
			g := newMatmul(make([]float32, z.m*z.n), make([]float32, z.m*z.k), make([]float32, z.n*z.k), z.m, z.n, z.k,
				true, false)
			g.packA = true
			chunks := g.chunks()
			for x := range chunks {
				g.p0, g.kb = g.terms(x, chunks)
				blocks := g.blocksOfRows(g.kb)
				for y := range blocks {
					checkForeseen(t, g, x, chunks, y, blocks)
				}
			}
			g.giveBack()
		}
	})
}

// checkForeseen prefetches like the block's panels, and compares with the next block.
func checkForeseen(t *testing.T, g *matmul[float32], x, chunks, y, blocks int) {
	t.Helper()
	g.i0, g.mb = g.rowsOfBlock(y, blocks)
	g.foresee(x, chunks, y, blocks)
	var asks []wanted
	for g.j0 = 0; g.j0 < g.n; g.j0 += g.e.cols {
		g.nb = min(g.e.cols, g.n-g.j0)
		// one panel packs op(b), four prefetch a line of each of its rows
		for left := g.mb - (1+g.e.cols/4)*g.e.rows; left > 0; {
			w := g.wantsA(left)
			if w.stretches == 0 {
				break
			}
			asks = append(asks, w)
			left -= w.panels * g.e.rows * int(w.stretches)
		}
	}
	y++
	if y == blocks {
		x, y = x+1, 0
	}
	if x == chunks {
		if len(asks) > 0 {
			t.Errorf("%d×%d×%d: after the last block something is asked for", g.m, g.n, g.k)
		}
		return
	}
	p0, kb := g.terms(x, chunks)
	i0, mb := g.rowsOfBlock(y, g.blocksOfRows(kb))
	asked := map[uintptr]bool{}
	for _, w := range asks {
		if 4*w.panels*(g.kb/4)/4 < kb {
			t.Errorf("%d×%d×%d: %d panels of %d terms do not reach term %d", g.m, g.n, g.k, w.panels, g.kb, kb)
		}
		for s := range w.stretches {
			for p := range uintptr(kb) {
				line := (w.from + s*w.apart + p*w.step) / asm.LineBytes
				if asked[line] && g.a.LD%(asm.LineBytes/4) == 0 {
					t.Fatalf("%d×%d×%d: a line is asked for twice", g.m, g.n, g.k)
				}
				asked[line] = true
			}
		}
	}
	missing := 0
	for p := p0; p < p0+kb; p++ {
		for i := i0; i < i0+mb; i += asm.LineBytes / 4 {
			if !asked[uintptr(unsafe.Pointer(&g.a.D[p*g.a.LD+i]))/asm.LineBytes] {
				missing++
			}
		}
		if !asked[uintptr(unsafe.Pointer(&g.a.D[p*g.a.LD+i0+mb-1]))/asm.LineBytes] {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d×%d×%d: %d lines of the block of rows from %d on and terms from %d on are not asked for", g.m, g.n,
			g.k, missing, i0, p0)
	}
}
