//go:build cuda && linux

package gpu

import (
	"encoding/binary"
	"fmt"
	"math"

	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// RoPE computes cpu.RoPE.
func RoPE[T num.Stored](r *rt.Rank, y, x Buf[T], batch, seq, heads, dim, turn int, where cpu.Where, theta float64,
	scale cpu.RopeScale, inverse bool) {
	RoPEPart(r, y, x, cpu.RopeRows{Batch: batch, Seq: seq, Heads: heads, Dim: dim, Turn: turn}, where, theta,
		scale, inverse)
}

// RoPEPart computes RoPE of a part of each row. The host computes the cosines and sines.
func RoPEPart[T num.Stored](r *rt.Rank, y, x Buf[T], s cpu.RopeRows, where cpu.Where, theta float64,
	scale cpu.RopeScale, inverse bool) {
	d := deviceOf(r)
	key := fmt.Sprint("rope ", computeSuffix[T](), s.Seq, s.Turn, where, theta, scale)
	table := d.constant(key, func() []byte {
		cos, sin := cpu.RopeTable(s.Seq, s.Turn, where, theta, scale)
		if suffix[T]() == "f64" {
			return doubles(cos, sin)
		}
		return floats(cos, sin)
	})
	bytes, _ := computeType[T]()
	sines := table + pointer(s.Seq*s.Turn/2*bytes)
	d.call("rope", suffix[T](), s.Batch*s.Seq, s.Heads*s.Dim, addr(d, y), addr(d, x), table, sines,
		s.Batch*s.Seq, s.Seq, s.Size(), s.Heads, s.Dim, s.From, s.Turn, s.Pairs, inverse)
}

// doubles encodes numbers as float64, floats as float32.
func doubles(xs ...[]float64) (b []byte) {
	for _, x := range xs {
		for _, v := range x {
			b = binary.NativeEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b
}

func floats(xs ...[]float64) (b []byte) {
	for _, x := range xs {
		for _, v := range x {
			b = binary.NativeEndian.AppendUint32(b, math.Float32bits(float32(v)))
		}
	}
	return b
}
