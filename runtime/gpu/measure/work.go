//go:build cuda && linux

package measure

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/gpu/module"
)

// randomBytes is the amount of operand contents that the host makes. Larger operands repeat it.
const randomBytes = 4 << 20

// fillRandom makes random operand contents that are normal numbers in each measured type. With zeros a GPU
// would draw less power, and run faster.
func (b *bench) fillRandom() (err error) {
	b.random, err = cuda.Alloc(randomBytes)
	if err != nil {
		return err
	}
	host, err := cuda.AllocPinned(randomBytes)
	if err != nil {
		return err
	}
	r, bytes := rand.New(rand.NewPCG(1, uint64(b.rank))), host.Slice()
	for i := 0; i < len(bytes); i += 2 {
		x := r.Uint32()
		binary.NativeEndian.PutUint16(bytes[i:], uint16(0x3f00|x&0xff|x&0x100<<7)) // 0.5 to 2, of either sign
	}
	err = b.stream.Upload(b.random, host)
	if err == nil {
		err = b.stream.Synchronize()
	}
	if free := host.Free(); err == nil {
		err = free
	}
	return err
}

// operand allocates memory filled with random numbers. The caller frees it.
func (b *bench) operand(bytes int64) (m cuda.Memory, err error) {
	m, err = cuda.Alloc(max(bytes, 256))
	if err != nil {
		return m, err
	}
	return m, b.repeat(m, b.random)
}

// repeat fills memory with repetitions of randomBytes of other memory.
func (b *bench) repeat(m, from cuda.Memory) (err error) {
	for at := int64(0); at < m.Bytes && err == nil; at += randomBytes {
		n := min(randomBytes, m.Bytes-at)
		err = b.stream.Copy(m.At(at, n), from.At(0, n))
	}
	return err
}

// withOperands calls f with operands of the given sizes in bytes.
func (b *bench) withOperands(f func(at []cuda.Memory) error, bytes ...int64) (err error) {
	var all []cuda.Memory
	defer func() {
		for _, m := range all {
			if free := m.Free(); err == nil {
				err = free
			}
		}
	}()
	for _, n := range bytes {
		m, err := b.operand(n)
		if m.Bytes > 0 {
			all = append(all, m)
		}
		if err != nil {
			return err
		}
	}
	err = f(all)
	if err == nil {
		err = b.stream.Synchronize()
	}
	return err
}

// warming is how long a GPU works before measurements: idle GPUs have low clocks.
const warming = 300 * time.Millisecond

func (b *bench) warm() error {
	return b.withOperands(func(at []cuda.Memory) error {
		for begin := time.Now(); time.Since(begin) < warming; {
			if err := b.stream.Copy(at[0], at[1]); err != nil {
				return err
			}
			if err := b.stream.Synchronize(); err != nil {
				return err
			}
		}
		return nil
	}, 16<<20, 16<<20)
}

// copies measures a GPU's memory: each byte is read and written.
func (b *bench) copies() error {
	var pace pace
	for _, n := range copySizes {
		p := Point{Of: OfCopy, Bytes: n}
		if !pace.affords(float64(n)) {
			b.skip(p)
			continue
		}
		err := b.withOperands(func(at []cuda.Memory) error {
			return b.point(p, &pace, float64(n), func() error { return b.stream.Copy(at[0], at[1]) })
		}, n, n)
		if err != nil {
			return err
		}
	}
	return nil
}

// host measures copies between pinned host memory and the GPU.
func (b *bench) host() error {
	for _, of := range []string{OfUpload, OfDownload} {
		var pace pace
		for _, n := range hostSizes {
			if err := b.hostOf(Point{Of: of, Bytes: n}, &pace); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) hostOf(p Point, pace *pace) (err error) {
	if !pace.affords(float64(p.Bytes)) {
		b.skip(p)
		return nil
	}
	host, err := cuda.AllocPinned(p.Bytes)
	if err != nil {
		return err
	}
	err = b.withOperands(func(at []cuda.Memory) error {
		return b.point(p, pace, float64(p.Bytes), func() error {
			if p.Of == OfUpload {
				return b.stream.Upload(at[0], host)
			}
			return b.stream.Download(host, at[0])
		})
	}, p.Bytes)
	if free := host.Free(); err == nil {
		err = free
	}
	return err
}

// graphed is the number of kernels in the measured graph.
const graphed = 200

// launches measures a kernel that does nothing: launched alone, and in a graph.
func (b *bench) launches() error {
	kernel, err := b.modules.Find(FillKernel + "_f32")
	if err != nil {
		return err
	}
	shape := module.Family(FillKernel).Launch(1, 1)
	return b.withOperands(func(at []cuda.Memory) error {
		launch := func() error {
			args := module.AddArguments(b.args.Reset(), FillKernel, []any{at[0].Pointer, 0.0, int64(1)})
			return b.stream.Launch(kernel, cuda.Shape{Grid: shape.Grid, Block: shape.Block}, args)
		}
		var pace pace
		if err := b.point(Point{Of: OfLaunch}, &pace, 1, launch); err != nil {
			return err
		}
		graph, err := b.stream.Capture(func() error {
			for range graphed {
				if err := launch(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		t, err := b.time(func() error { return b.stream.Replay(graph) })
		if err == nil && b.rank == 0 {
			b.out.Points = append(b.out.Points, Point{Of: OfReplay, Seconds: t.seconds / graphed, Spread: t.spread})
		}
		if err == nil {
			err = b.stream.Synchronize()
		}
		if free := graph.Close(); err == nil {
			err = free
		}
		return err
	}, 256)
}

// matmuls measures GEMMs.
func (b *bench) matmuls() error {
	paces := map[string]*pace{}
	for _, p := range gemmShapes {
		p.Of = OfGEMM
		if paces[p.Type] == nil {
			paces[p.Type] = &pace{}
		}
		if !paces[p.Type].affords(p.Flops()) {
			b.skip(p)
			continue
		}
		if err := b.matmul(p, paces[p.Type]); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) matmul(p Point, pace *pace) error {
	v := map[string]cuda.Value{"bf16": cuda.ValueBFloat16, "fp16": cuda.ValueFloat16, "tf32": cuda.ValueFloat32,
		"f32": cuda.ValueFloat32}[p.Type]
	size := int64(2)
	if v == cuda.ValueFloat32 {
		size = 4
	}
	way, err := b.gemms.Prepare(cuda.GEMM{M: p.M, N: p.N, K: p.K, TransposeA: p.Transposed == "a",
		TransposeB: p.Transposed == "b", In: v, Out: v, TF32: p.Type == "tf32"}, cuda.GEMMWorkspace)
	if err != nil {
		return err
	}
	m, n, k := int64(p.M), int64(p.N), int64(p.K)
	err = b.withOperands(func(at []cuda.Memory) error {
		return b.point(p, pace, p.Flops(), func() error {
			return b.stream.GEMM(way, 1, 0, cuda.InPlace(at[0].Pointer, at[1].Pointer, at[2].Pointer), b.work)
		})
	}, size*m*n, size*m*k, size*k*n)
	if free := way.Close(); err == nil {
		err = free
	}
	return err
}

// attentionBench measures attention.
type attentionBench struct{ *bench }

// attend measures attention, forward and backward.
func (b attentionBench) attend() error {
	var forward, backward pace
	for _, s := range attentionShapes {
		p := Point{Of: OfAttention, Type: "bf16", M: s.seq, N: s.seq, K: s.dim, Batch: s.batch * s.heads * s.group}
		if !forward.affords(p.Flops()) || !backward.affords(p.Flops()) {
			b.skip(p)
			continue
		}
		if err := b.attention(p, s, &forward, &backward); err != nil {
			return err
		}
	}
	return nil
}

// attentionOperands are the addresses of the operands of attention and of its gradient.
type attentionOperands struct{ o, dq, do, q, dk, dv, k, v, lse, dot cuda.Pointer }

func (b attentionBench) attention(p Point, s attentionShape, forward, backward *pace) error {
	kv := int64(s.batch*s.seq*s.heads*s.dim) * 2
	q, rows := kv*int64(s.group), s.batch*s.seq*s.heads*s.group
	return b.withOperands(func(at []cuda.Memory) error {
		shape := s.shape()
		x := attentionOperands{at[0].Pointer, at[1].Pointer, at[2].Pointer, at[3].Pointer, at[4].Pointer, at[5].Pointer,
			at[6].Pointer, at[7].Pointer, at[8].Pointer, at[9].Pointer}
		err := b.point(p, forward, p.Flops(), func() error {
			return b.step(kernels.Attention(shape, p.Type), x.o, x.lse, x.q, x.k, x.v, kernels.AttentionShape(shape))
		})
		if err != nil {
			return err
		}
		p.Of = OfAttentionGrad
		return b.point(p, backward, p.Flops(), func() error { return b.attentionGrad(shape, rows, x) })
	}, q, q, q, q, kv, kv, kv, kv, int64(rows)*4, int64(rows)*4)
}

// attentionGrad enqueues the launches of the gradient of attention.
func (b attentionBench) attentionGrad(s *cpu.AttentionShape, rows int, x attentionOperands) error {
	steps, bytes := kernels.AttentionGrad(s, "bf16"), kernels.AttentionShape(s)
	err := b.step(steps[0], x.dot, x.do, x.o, int64(rows), s.VDim)
	if err == nil {
		err = b.step(steps[1], x.dq, x.do, x.q, x.k, x.v, x.lse, x.dot, bytes)
	}
	if err == nil {
		err = b.step(steps[2], x.dk, x.dv, x.do, x.q, x.k, x.v, x.lse, x.dot, bytes)
	}
	return err
}

// step enqueues one launch of attention.
func (b attentionBench) step(s kernels.Step, args ...any) error {
	k, err := b.modules.Find(s.Kernel + "_bf16")
	if err != nil {
		return err
	}
	return b.stream.Launch(k, cuda.Shape{Grid: s.Launch.Grid, Block: s.Launch.Block},
		module.AddArguments(b.args.Reset(), s.Kernel, args))
}
