//go:build cuda && linux

package gpu

import (
	"testing"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/num"
)

// The tests' model, written by hand in the form of generated code, for a CPU and a GPU. Four blocks
// multiply a stream of width numbers per position. The first layer computes the stream from tokens, and the
// last one the loss: the distance from the label.
const (
	width  = 8
	blocks = 4
	seqLen = 6
	micros = 4
)

// toy is a plan of the model: dp replicas, pp stages, and how the state is sharded.
type toy struct {
	pp, zero   int
	half       bool // bf16 parameters with a master copy, and gradients that are reduced in bf16; otherwise f64
	stochastic bool // with half: no master copy, but stochastic rounding of the parameters
	reduce     bool // gradients are also summed as over a tensor-parallel axis
	optim      rt.OptimizerKind
	plain      bool // SGD with momentum 0, without a momentum buffer
}

const dp = 2

// withoutTable lets GEMMs load their kernels in a step of the emulated GPU, because the test's program has no table of
// them.
func withoutTable(t *testing.T) {
	t.Helper()
	t.Setenv("PLANC_EMULATED_STEP", "")
}

func (k toy) program(gpu bool) *rt.Program {
	p := &rt.Program{
		ProgramData: rt.ProgramData{
			Name: "toy", Hash: "0123456789abcdef", Elem: rt.F64, Optim: k.optim,
			Plan:  rt.Plan{DP: dp, PP: k.pp, Zero: k.zero, Text: "dp test"},
			Model: rt.Model{Name: "toy", Params: (blocks + 2) * width, Vocab: 16, SeqLen: seqLen},
			Settings: rt.Settings{Train: rt.TrainSettings{
				Steps: 6, Seed: 5, Optimizer: rt.OptimizerSettings{LR: 0.02, Betas: [2]float64{0.9, 0.99},
					Momentum: 0.9,
					Eps:      1e-8, WeightDecay: 0.1, ClipNorm: 0.3},
				Schedule: rt.ScheduleSettings{Kind: "cosine", Warmup: 3, MinLR: 0.001},
			}},
			Mesh:   []rt.Axis{{Name: "dp", Size: dp}, {Name: "pp", Size: k.pp}},
			Groups: []rt.Group{{Axes: []string{"dp"}, Tensors: true}, {Axes: []string{"dp", "pp"}, Tensors: true}},
			Loss:   1, World: 1,
			Batch: rt.BatchLayout{MicroBatch: 1, MicroBatches: micros, SeqLen: seqLen, Replicas: dp,
				ReplicaAxes: []string{"dp"}, GlobalBatch: micros * dp},
		},
	}
	if k.half {
		p.Elem = rt.F32
		p.Types = rt.Types{Compute: rt.F32, Params: rt.BF16, Grads: rt.F32, Reduce: rt.BF16, Master: rt.F32,
			Moments: rt.F32}
	}
	p.StochasticRounding = k.stochastic
	if k.stochastic {
		p.Types.Master = rt.BF16
	}
	if k.plain {
		p.Settings.Train.Optimizer.Momentum = 0
	}
	p.Stream, p.PrepostReceives = seqLen*width*p.Elem.Size(), k.pp > 1
	f := onCPU(k.half)
	if gpu {
		f = onGPU(k.half)
	}
	for i, s := range []rt.SegmentData{{Name: "in", Output: true}, {Name: "block", Input: true, Output: true},
		{Name: "head", Input: true}} {
		s.Refs = []rt.Ref{{Segment: i}}
		p.Segments = append(p.Segments, rt.Segment{SegmentData: s, Forward: f[i][0], Backward: f[i][1]})
		layers := 1
		if i == 1 {
			layers = blocks
		}
		name := []string{"a", "w.{layer}", "v"}[i]
		p.Params = append(p.Params, rt.Param{Name: name, Layers: layers, Dims: []rt.Dim{{Name: "width", Size: width}},
			Places: []rt.Place{{Segment: i}}, Init: rt.Init{Kind: rt.Normal, Std: 0.6}, Decay: i == 1,
			LRMultiplier: []float64{0, 0.5, 3}[i]})
	}
	for s := range k.pp {
		p.Stages = append(p.Stages, k.stage(p, s))
	}
	return p
}

// stage lays out a stage: its layers, a bucket for each, and the arena.
func (k toy) stage(p *rt.Program, s int) rt.Stage {
	out := rt.Stage{Schedule: "(F0 B0)*4 U"}
	chunk := rt.Chunk{Index: s, Buffers: 1, Size: (blocks + 3) * p.Stream}
	if s < k.pp-1 {
		out.Schedule, chunk.Buffers = "F0 (F0 B0)*3 B0 U", 2
	}
	run := func(segment, from, count, at int) {
		chunk.Runs = append(chunk.Runs, rt.LayerRun{Segment: segment, From: from, Count: count, Offset: at * p.Stream,
			Stride: p.Stream})
		for i := range count {
			k.bucket(&out, rt.Piece{Segment: segment, Layer: from + i})
		}
	}
	each := blocks / k.pp
	if s == 0 {
		run(0, 0, 1, 0)
	}
	run(1, s*each, each, 0)
	if s == k.pp-1 {
		run(2, 0, 1, each)
	}
	out.Chunks = []rt.Chunk{chunk}
	k.arena(p, &out)
	return out
}

// bucket adds a layer's bucket.
func (k toy) bucket(s *rt.Stage, piece rt.Piece) {
	at := len(s.Buckets) * width
	piece.Offset = at
	b := rt.Bucket{Offset: at, Elems: width, Reduce: -1, Sum: 0, Shard: -1, State: at, Params: at, Grads: at,
		ReplicatedOver: []string{"dp"}, Pieces: []rt.Piece{piece}}
	if k.reduce {
		b.Reduce, b.Sum = 0, -1
	}
	if k.zero > 0 {
		b.Shard, b.State = 0, at/dp
	}
	if k.zero > 1 {
		b.ShardedGrads, b.Grads = true, at/dp
	}
	if k.zero > 2 {
		b.ShardedParams, b.Params = true, at/dp
	}
	s.Buckets = append(s.Buckets, b)
}

func (k toy) arena(p *rt.Program, s *rt.Stage) {
	types, n, at := p.TensorTypes(), len(s.Buckets)*width, 0
	next := func(bytes int) rt.Region {
		r := rt.Region{Offset: at, Size: bytes}
		at += (bytes + 63) &^ 63
		return r
	}
	part := func(sharded bool, e rt.Elem) int {
		if sharded {
			return n / dp * e.Size()
		}
		return n * e.Size()
	}
	a := &s.Arena
	a.Params, a.Grads = next(part(k.zero > 2, types.Params)), next(part(k.zero > 1, types.Grads))
	if types.Master != types.Params {
		a.Master = next(part(k.zero > 0, types.Master))
	}
	if !k.plain {
		a.Moment1 = next(part(k.zero > 0, types.Moments))
	}
	if k.optim != rt.SGD {
		a.Moment2 = next(part(k.zero > 0, types.Moments))
	}
	a.Activations = next(s.Chunks[0].Buffers * s.Chunks[0].Size)
	a.Workspace = next(2 * p.Stream)
	if k.zero > 1 {
		s.Scatter = (width*types.Grads.Size() + 63) &^ 63
	}
	if k.zero > 2 {
		s.Gather = (width*types.Params.Size() + 63) &^ 63
	}
	a.Comm = next(3*p.Stream + 2*s.Scatter + 2*s.Gather)
	positions := micros * seqLen
	a.Batch.Offset = at
	s.Inputs.Tokens, s.Inputs.Labels, s.Inputs.Mask = next(4*positions).Offset, next(4*positions).Offset,
		next(p.Elem.Size()*positions).Offset
	a.Batch.Size = at - a.Batch.Offset
	a.Size = at
}

// functions holds the forward and backward functions of each segment.
type functions [3][2]func(*rt.Rank, *rt.Block)

func onCPU(half bool) functions {
	if half {
		return loops[float32, num.BF16]()
	}
	return loops[float64, float64]()
}

func loops[F rt.Float, P num.Stored]() functions {
	return functions{
		{func(r *rt.Rank, b *rt.Block) {
			y, a := rt.View[F](r, b.Out, seqLen*width), params[F, P](r, b)
			for i, t := range ints(r, b, r.Stage.Inputs.Tokens) {
				for j := range a {
					y[i*width+j] = F(t) / 16 * a[j]
				}
			}
		}, func(r *rt.Rank, b *rt.Block) {
			dy, da := rt.View[F](r, b.DY, seqLen*width), rt.View[F](r, b.Grads[0], width)
			for i, t := range ints(r, b, r.Stage.Inputs.Tokens) {
				for j := range da {
					da[j] += F(dy[i*width+j] * (F(t) / 16))
				}
			}
		}},
		{func(r *rt.Rank, b *rt.Block) {
			y, x, w := rt.View[F](r, b.Out, seqLen*width), rt.View[F](r, b.X, seqLen*width), params[F, P](r, b)
			for i := range y {
				y[i] = F(x[i]*w[i%width]) + 0.125
			}
		}, func(r *rt.Rank, b *rt.Block) {
			dy, x, w := rt.View[F](r, b.DY, seqLen*width), rt.View[F](r, b.X, seqLen*width), params[F, P](r, b)
			dx, dw := rt.View[F](r, b.DX, seqLen*width), rt.View[F](r, b.Grads[0], width)
			for i := range dy {
				dw[i%width] += F(dy[i] * x[i])
				dx[i] = dy[i] * w[i%width]
			}
		}},
		{func(r *rt.Rank, b *rt.Block) {
			mask := rt.View[F](r, r.Stage.Inputs.Mask, micros*seqLen)[b.Micro*seqLen:]
			sum := 0.0
			for i := range seqLen {
				e := float64(missed[F, P](r, b, i))
				sum += float64(float64(mask[i]) * e * e / 2)
			}
			r.LossSum += sum
		}, func(r *rt.Rank, b *rt.Block) {
			mask := rt.View[F](r, r.Stage.Inputs.Mask, micros*seqLen)[b.Micro*seqLen:]
			x, v := rt.View[F](r, b.X, seqLen*width), params[F, P](r, b)
			dx, dv := rt.View[F](r, b.DX, seqLen*width), rt.View[F](r, b.Grads[0], width)
			for i := range seqLen {
				g := mask[i] * missed[F, P](r, b, i) * F(r.Scale/r.Tokens)
				for j := range v {
					dv[j] += F(g * x[i*width+j])
					dx[i*width+j] = g * v[j]
				}
			}
		}},
	}
}

func params[F rt.Float, P num.Stored](r *rt.Rank, b *rt.Block) []F {
	out := make([]F, width)
	num.Load(out, rt.View[P](r, b.Params[0], width))
	return out
}

// ints returns the micro-batch's part of an input.
func ints(r *rt.Rank, b *rt.Block, at int) []int32 {
	return rt.View[int32](r, at, micros*seqLen)[b.Micro*seqLen:][:seqLen]
}

// missed returns the distance of a position from its label.
func missed[F rt.Float, P num.Stored](r *rt.Rank, b *rt.Block, i int) F {
	x, v := rt.View[F](r, b.X, seqLen*width)[i*width:], params[F, P](r, b)
	e := F(-ints(r, b, r.Stage.Inputs.Labels)[i]) / 16
	for j := range v {
		e += F(x[j] * v[j])
	}
	return e
}

// onGPU returns the same functions as kernels of testdata/toy.cu.
func onGPU(half bool) functions {
	types, elem := "_f64", 8
	if half {
		types, elem = "_bf16", 4
	}
	call := func(name string, args func(d *device, b *rt.Block, a *cuda.Args,
		input func(at, size int) cuda.Pointer)) func(*rt.Rank, *rt.Block) {
		return func(r *rt.Rank, b *rt.Block) {
			d := deviceOf(r)
			a := d.args()
			args(d, b, a, func(at, size int) cuda.Pointer { return d.ptr(at + b.Micro*seqLen*size) })
			d.launch(name+types, kernels.Launch{Grid: [3]int{1}, Block: [3]int{32}}, a.Int32(seqLen).Int32(width))
		}
	}
	type input = func(at, size int) cuda.Pointer
	return functions{
		{call("toy_in", func(d *device, b *rt.Block, a *cuda.Args, in input) {
			a.Pointer(d.ptr(b.Out)).Pointer(in(d.rank.Stage.Inputs.Tokens, 4)).Pointer(d.ptr(b.Params[0]))
		}), call("toy_in_grad", func(d *device, b *rt.Block, a *cuda.Args, in input) {
			a.Pointer(d.ptr(b.Grads[0])).Pointer(d.ptr(b.DY)).Pointer(in(d.rank.Stage.Inputs.Tokens, 4))
		})},
		{call("toy_block", func(d *device, b *rt.Block, a *cuda.Args, in input) {
			a.Pointer(d.ptr(b.Out)).Pointer(d.ptr(b.X)).Pointer(d.ptr(b.Params[0]))
		}), call("toy_block_grad", func(d *device, b *rt.Block, a *cuda.Args, in input) {
			a.Pointer(d.ptr(b.DX)).Pointer(d.ptr(b.Grads[0])).Pointer(d.ptr(b.DY)).Pointer(d.ptr(b.X)).Pointer(
				d.ptr(b.Params[0]))
		})},
		{call("toy_head", func(d *device, b *rt.Block, a *cuda.Args, in input) {
			a.Pointer(d.step.result(lossSum)).Pointer(d.ptr(b.X)).Pointer(d.ptr(b.Params[0]))
			a.Pointer(in(d.rank.Stage.Inputs.Labels, 4)).Pointer(in(d.rank.Stage.Inputs.Mask, elem))
		}), call("toy_head_grad", func(d *device, b *rt.Block, a *cuda.Args, in input) {
			a.Pointer(d.ptr(b.DX)).Pointer(d.ptr(b.Grads[0])).Pointer(d.ptr(b.X)).Pointer(d.ptr(b.Params[0]))
			a.Pointer(in(d.rank.Stage.Inputs.Labels, 4)).Pointer(in(d.rank.Stage.Inputs.Mask, elem))
			a.Pointer(d.step.value(lossScale)).Pointer(d.step.value(tokens))
		})},
	}
}

// drawn is a Source of pseudorandom tokens.
type drawn struct{}

func (drawn) Train(g int64, tokens, labels []int32) (int, error) {
	for i := range tokens {
		tokens[i], labels[i] = int32(g*7+int64(i)*5)%16, int32(g*3+int64(i))%16
	}
	return len(tokens) - int(g%3), nil
}
func (d drawn) Valid(g int64, tokens, labels []int32) (int, error) {
	return d.Train(g+100, tokens, labels)
}
func (drawn) TrainSamples() int64 { return 40 }
func (drawn) ValidSamples() int64 { return 6 }
