//go:build cuda && linux

package measure

import (
	"math/rand/v2"

	"github.com/planc-dev/planc/cuda"
)

// fp8Arch is the first architecture whose tensor cores support FP8: Ada.
const fp8Arch = 89

// scaleAlign is the distance of the scales of both operands, in bytes.
const scaleAlign = 256

// fp8Matmuls measures FP8 GEMMs, if all GPUs support them.
func (b *bench) fp8Matmuls() (err error) {
	lacking := 0.0
	if 10*b.gpu.Major+b.gpu.Minor < fp8Arch {
		lacking = 1
	}
	if b.barrier.max(lacking) > 0 {
		return nil
	}
	return b.withOperands(func(at []cuda.Memory) error {
		if err := b.fillCodes(at[0]); err != nil {
			return err
		}
		if err := b.stream.Fill(at[1], 0x3f); err != nil { // a scale between 0.5 and 1
			return err
		}
		var pace pace
		for _, p := range fp8Shapes {
			p.Of, p.Type = OfFP8, "fp8"
			if !pace.affords(p.Flops()) {
				b.skip(p)
				continue
			}
			if err := b.fp8Matmul(p, &pace, at[0], at[1]); err != nil {
				return err
			}
		}
		return nil
	}, randomBytes, 2*scaleAlign)
}

// fillCodes writes codes of numbers between 1/8 and 2 of either sign, in both formats.
func (b *bench) fillCodes(to cuda.Memory) error {
	host, err := cuda.AllocPinned(to.Bytes)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(2, uint64(b.rank)))
	for i, bytes := 0, host.Slice(); i < len(bytes); i++ {
		x := byte(r.Uint32())
		bytes[i] = 0x30 | x&0x8f
	}
	err = b.stream.Upload(to, host)
	if err == nil {
		err = b.stream.Synchronize()
	}
	if free := host.Free(); err == nil {
		err = free
	}
	return err
}

// fp8Matmul measures one GEMM with the layout of MatMul8: the dim that is summed is contiguous in both
// operands. GEMMs that a GPU's cuBLASLt does not support are left out.
func (b *bench) fp8Matmul(p Point, pace *pace, codes, scales cuda.Memory) error {
	x := cuda.GEMM{M: p.M, N: p.N, K: p.K, TransposeB: true, In: cuda.ValueE4M3, InB: cuda.ValueE4M3,
		Out: cuda.ValueBFloat16, ScaleA: scales.Pointer, ScaleB: scales.Pointer + scaleAlign}
	switch p.Transposed {
	case "a":
		x.InB = cuda.ValueE5M2
	case "b":
		x.In = cuda.ValueE5M2
	}
	way, refused := b.gemms.Prepare(x, cuda.GEMMWorkspace)
	lacking := 0.0
	if refused != nil {
		lacking = 1
	}
	if b.barrier.max(lacking) > 0 {
		if b.rank == 0 {
			b.out.Left = append(b.out.Left,
				p.Text()+": cuBLASLt "+b.blas.Version+" does not support it on these GPUs")
		}
		if way != nil {
			return way.Close()
		}
		return nil
	}
	m, n, k := int64(p.M), int64(p.N), int64(p.K)
	err := b.withOperands(func(at []cuda.Memory) error {
		for _, operand := range at[1:] {
			if err := b.repeat(operand, codes); err != nil {
				return err
			}
		}
		return b.point(p, pace, p.Flops(), func() error {
			return b.stream.GEMM(way, 1, 0, cuda.InPlace(at[0].Pointer, at[1].Pointer, at[2].Pointer), b.work)
		})
	}, 2*m*n, m*k, n*k)
	if free := way.Close(); err == nil {
		err = free
	}
	return err
}
