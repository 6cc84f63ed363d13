package runtime

import (
	"io"
	"log/slog"
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/rng"
	"github.com/planc-dev/planc/runtime/tensors"
)

// The programs of these tests are bigram models written by hand as generated code would be: logits are
// W[token] + b, trained data parallel, with the optimizer's state whole or sharded (ZeRO-1).

const (
	vocab    = 11
	vocabPad = 128 // elements of W, and of b, in the flat space
)

// bigram is such a program: global batch 8 of 6 tokens over dp replicas.
func bigram[F tensors.Float](dp, zero int) *rank.Program {
	shard := -1
	if zero == 1 {
		shard = 0
	}
	state := func(elems int) int {
		if zero == 1 {
			return elems / dp
		}
		return elems
	}
	elem, size := F64, 8
	if _, ok := any(F(0)).(float32); ok {
		elem, size = F32, 4
	}
	flat := Region{Offset: 0, Size: 2 * vocabPad * size}
	at := 0
	next := func(bytes int) Region {
		r := Region{Offset: at, Size: bytes}
		at += (bytes + 63) &^ 63
		return r
	}
	p := &rank.Program{ProgramData: program.Program{Name: "bigram",
		Hash:  "0123456789abcdef",
		Elem:  elem,
		Plan:  Plan{DP: dp, Zero: zero, Text: "dp test"},
		Model: Model{Name: "bigram", Params: vocab*vocab + vocab, Vocab: vocab, SeqLen: 6},
		Settings: Settings{Train: TrainSettings{
			Steps: 12, Seed: 5, Optimizer: OptimizerSettings{LR: 0.05, Betas: [2]float64{0.9, 0.99}, Eps: 1e-8,
				WeightDecay: 0.1, ClipNorm: 0.3},
			Schedule: ScheduleSettings{Kind: "cosine", Warmup: 3, MinLR: 0.001},
		}},
		Mesh:   []Axis{{Name: "dp", Size: dp}},
		Groups: []Group{{Axes: []string{"dp"}}},
		Params: []Param{
			{Name: "w", Layers: 1, Dims: []Dim{{Name: "vocab", Size: vocab, Axes: nil}, {Name: "out", Size: vocab,
				Axes: nil}}, Places: []Place{{Segment: 0, Class: 1, Offset: 0}},
				Init: Init{Kind: Normal, Std: 0.3}, Decay: true},
			{Name: "b", Layers: 1, Dims: []Dim{{Name: "out", Size: vocab, Axes: nil}},
				Places: []Place{{Segment: 0, Class: 0, Offset: 0}}},
		},
		Stages: []Stage{{Schedule: "(F0 B0)*2 U", Chunks: []Chunk{{Runs: []LayerRun{{Count: 1}}, Buffers: 1}},
			Buckets: []Bucket{
				{Offset: vocabPad, Params: vocabPad, Grads: vocabPad, Elems: vocabPad, Reduce: -1, Sum: 0, Shard: shard,
					State: 0, ReplicatedOver: []string{"dp"},
					Pieces: []Piece{{Segment: 0, Layer: 0, Offset: vocabPad}}},
				{Class: 1, Offset: 0, Elems: vocabPad, Reduce: -1, Sum: 0, Shard: shard, State: state(vocabPad),
					ReplicatedOver: []string{"dp"}, Pieces: []Piece{{Segment: 0, Layer: 0, Offset: 0}}},
			}}},
		Batch: BatchLayout{MicroBatch: 8 / dp / 2, MicroBatches: 2, SeqLen: 6, Replicas: dp,
			ReplicaAxes: []string{"dp"}, GlobalBatch: 8}},
		Segments: []rank.Segment{{SegmentData: program.Segment{Refs: []Ref{{Segment: 0, Class: 0},
			{Segment: 0, Class: 1}}, Name: "all"},
			Forward:  bigramForward[F],
			Backward: bigramBackward[F],
			Logits:   bigramLogits[F],
		}},
	}
	if dp == 1 {
		p.Stages[0].Buckets[0].Sum, p.Stages[0].Buckets[1].Sum = -1, -1
		p.Tokens, p.Loss, p.World = -1, -1, -1
	}
	tokens := 8 / dp * 6
	s := &p.Stages[0]
	s.Arena.Params, s.Arena.Grads = next(flat.Size), next(flat.Size)
	s.Arena.Moment1, s.Arena.Moment2 = next(state(2*vocabPad)*size), next(state(2*vocabPad)*size)
	s.Inputs.Tokens, s.Inputs.Labels, s.Inputs.Mask = next(4*tokens).Offset, next(4*tokens).Offset,
		next(size*tokens).Offset
	s.Arena.Logits = next(p.Batch.MicroBatch * vocab * size)
	s.Arena.Size = at
	return p
}

// hybrid is bigram on 2 × 2 replicas, with the state sharded within pairs of them.
func hybrid[F tensors.Float]() *rank.Program {
	p := bigram[F](4, 0)
	p.Mesh = []Axis{{Name: "in", Size: 2}, {Name: "out", Size: 2}}
	p.Groups = []Group{{Axes: []string{"in", "out"}}, {Axes: []string{"in"}}}
	p.Batch.ReplicaAxes = []string{"in", "out"}
	for i := range p.Stages[0].Buckets {
		b := &p.Stages[0].Buckets[i]
		b.Shard, b.ReplicatedOver = 1, nil
	}
	return p
}

func bigramForward[F tensors.Float](r *rank.Rank, b *rank.Block) {
	r.LossSum += bigramLoss[F](r, b.Micro, nil)
}

func bigramBackward[F tensors.Float](r *rank.Rank, b *rank.Block) {
	bigramLoss(r, b.Micro, View[F](r, r.Stage.Arena.Grads.Offset, 2*vocabPad))
}

// bigramLoss is the loss of a micro-batch; where grads is given it adds the gradient of the mean loss, times the loss
// scale.
func bigramLoss[F tensors.Float](r *rank.Rank, m int, grads []F) float64 {
	l := &r.Program.Batch
	in := &r.Stage.Inputs
	n := l.MicroBatch * l.SeqLen
	tokens := View[int32](r, in.Tokens+4*m*n, n)
	labels := View[int32](r, in.Labels+4*m*n, n)
	mask := View[F](r, in.Mask+r.Program.Elem.Size()*m*n, n)
	loss := 0.0
	for i, tok := range tokens {
		if mask[i] == 0 {
			continue
		}
		p := bigramSoftmax[F](r, int(tok))
		loss -= math.Log(p[labels[i]])
		p[labels[i]]--
		for j := range p {
			if grads != nil {
				grads[int(tok)*vocab+j] += F(p[j] * r.Scale / r.Tokens)
				grads[vocabPad+j] += F(p[j] * r.Scale / r.Tokens)
			}
		}
	}
	return loss
}

func bigramSoftmax[F tensors.Float](r *rank.Rank, tok int) []float64 {
	params := make([]F, 2*vocabPad)
	tensors.Read(&r.Store, r.Program.TensorTypes().Params, r.Stage.Arena.Params.Offset, params)
	p, sum := make([]float64, vocab), 0.0
	for j := range p {
		p[j] = math.Exp(float64(params[tok*vocab+j] + params[vocabPad+j]))
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
	return p
}

func bigramLogits[F tensors.Float](r *rank.Rank, b *rank.Block) {
	l := &r.Program.Batch
	out := View[F](r, b.Logits, l.MicroBatch*vocab)
	for row := range l.MicroBatch {
		tok := View[int32](r, r.Stage.Inputs.Tokens, l.MicroBatch*l.SeqLen)[row*l.SeqLen+r.Pos]
		for j, p := range bigramSoftmax[F](r, int(tok)) {
			out[row*vocab+j] = F(math.Log(p))
		}
	}
}

// drawnElems is a Source of chains in which each token mostly follows from the one before.
type drawn struct{ train, valid int64 }

func (d drawn) Train(g int64, tokens, labels []int32) (int, error) {
	return d.fill(rng.Key(1, uint64(g%d.train)), tokens, labels), nil
}
func (d drawn) Valid(g int64, tokens, labels []int32) (int, error) {
	return d.fill(rng.Key(2, uint64(g)), tokens, labels), nil
}
func (d drawn) TrainSamples() int64 { return d.train }
func (d drawn) ValidSamples() int64 { return d.valid }

func (d drawn) fill(key uint64, tokens, labels []int32) int {
	t := int32(rng.Bits(key, 0) % vocab)
	for i := range tokens {
		tokens[i] = t
		t = (3*t + 1) % vocab
		if rng.Uniform(key, uint64(i+1)) < 0.2 {
			t = int32(rng.Bits(key, uint64(i+100)) % vocab)
		}
		labels[i] = t
	}
	return len(tokens) - int(key%3) // not every row is full
}

// train runs a program over drawn data in dir.
func train(t *testing.T, p *rank.Program, dir string, opts ...Option) (report.Result, error) {
	t.Helper()
	opts = append([]Option{Dir(dir), Data(drawn{40, 10}), Logger(slog.New(slog.DiscardHandler))}, opts...)
	return Run(t.Context(), p, opts...)
}

// text makes Run report to people on w, as Main does.
func text(w io.Writer, terminal bool) Option {
	return func(o *driver.Options) { o.Text, o.Terminal = w, terminal }
}
