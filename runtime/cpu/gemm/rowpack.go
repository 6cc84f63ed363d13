package gemm

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/team"
)

// togetherPairs is the number of pairs of a row that packCols writes at once.
const togetherPairs = 16

// pairsPacked returns the distance of rows, in pairs, if op(a) is packed row by row. Long rows are padded
// to what the packing function writes at once.
func (g *tiling[F]) pairsPacked() int {
	if g.lone || g.kb < togetherPairs {
		return g.kb
	}
	return (g.kb + togetherPairs - 1) / togetherPairs * togetherPairs
}

// packTogether packs the block's rows lo to hi-1 of op(a) row by row: first 16 pairs of a panel's rows as
// [pairs][rows], then their transpose. What follows a row's last pair is not read.
func (g *packer[F]) packTogether(x lines, lo, hi int) {
	step := g.pairsPacked()
	if step < togetherPairs || g.lone {
		g.packFew(x, lo, hi, step)
		return
	}
	t := turnedPool.Get()
	for ; lo < hi; lo += x.w {
		n := min(x.w, hi-lo)
		for p := 0; p < g.kb; p += togetherPairs {
			rows := min(togetherPairs, g.kb-p)
			from := x.h[x.at(lo, 2*p):]
			_, _ = from[(2*rows-1)*x.ld+n-1], g.pa[(lo+n-1)*step+p+togetherPairs-1]
			g.e.packPairs((*byte)(unsafe.Pointer(&t[0])), &from[0], turnedRoom*4, uintptr(2*x.ld), uintptr(rows),
				uintptr(n), turnedRoom, 0)
			g.e.packCols((*float32)(unsafe.Pointer(&g.pa[lo*step+p])), &t[0], uintptr(4*step), turnedRoom*4, uintptr(n))
		}
	}
	turnedPool.Put(t)
}

// packFew is packTogether for few pairs, or for a single term.
func (g *packer[F]) packFew(x lines, lo, hi, step int) {
	to := unsafe.Slice((*uint32)(unsafe.Pointer(&g.pa[0])), len(g.pa))
	for r := lo; r < hi; r++ {
		for p := range g.kb {
			pair := uint32(x.h[x.at(r, 2*p)])
			if !g.lone {
				pair |= uint32(x.h[x.at(r, 2*p+1)]) << 16
			}
			to[r*step+p] = pair
		}
	}
}

// turnedRoom is the maximum number of rows of op(a) in a panel.
const turnedRoom = 32

// turnedPool holds memory for 16 pairs of a panel's rows.
var turnedPool team.Pool[[togetherPairs * turnedRoom]float32]
