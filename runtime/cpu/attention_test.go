package cpu

import (
	"math"
	"testing"
)

// tensors holds the operands and results of Attention.
type tensors[F Float] struct{ q, k, v, o, lse, do, dq, dk, dv []F }

func drawTensors[F Float](s AttentionShape) tensors[F] {
	nq, nk := s.Batch*s.Seq*s.Heads*s.Group, s.Batch*s.KSeq*s.Heads
	return tensors[F]{
		q: draw[F](1, nq*s.Dim), k: draw[F](2, nk*s.Dim), v: draw[F](3, nk*s.VDim), do: draw[F](4, nq*s.VDim),
		// overwritten by the kernels
		o: draw[F](5, nq*s.VDim), lse: draw[F](6, nq),
		dq: draw[F](7, nq*s.Dim), dk: draw[F](8, nk*s.Dim), dv: draw[F](9, nk*s.VDim),
	}
}

// naiveAttention computes Attention query by query.
func naiveAttention(q, k, v []float64, s AttentionShape) (o, lse []float64) {
	n := s.Batch * s.Seq * s.Heads * s.Group
	o, lse = make([]float64, n*s.VDim), make([]float64, n)
	for r := range n {
		g, h, i, b := r%s.Group, r/s.Group%s.Heads, r/s.Group/s.Heads%s.Seq, r/s.Group/s.Heads/s.Seq
		pos, sum := s.Pos0+i, 0.0
		p := make([]float64, s.KSeq)
		for j := range p {
			kpos := s.KPos0 + j
			if s.Causal && kpos > pos || s.Window > 0 && pos-kpos >= s.Window || inOtherDocument(&s, b, pos, kpos) {
				continue
			}
			for d := range s.Dim {
				p[j] += q[r*s.Dim+d] * k[((b*s.KSeq+j)*s.Heads+h)*s.Dim+d]
			}
			p[j] *= s.Scale
			if s.Softcap > 0 {
				p[j] = s.Softcap * math.Tanh(p[j]/s.Softcap)
			}
			if s.Alibi {
				p[j] += bloomSlopes(s.HeadsAll * s.GroupAll)[(s.Head0+h)*s.GroupAll+s.Group0+g] * float64(kpos-pos)
			}
			p[j] = math.Exp(p[j])
			sum += p[j]
		}
		lse[r] = math.Log(sum)
		for j := range p {
			at := ((((s.Batch0+b)*s.HeadsAll+s.Head0+h)*s.GroupAll+s.Group0+g)*s.SeqAll+pos)*s.KSeqAll + s.KPos0 + j
			if p[j] == 0 || !Keep(s.Key, uint64(at), s.Dropout) {
				continue
			}
			for d := range s.VDim {
				o[r*s.VDim+d] += p[j] / sum / (1 - s.Dropout) * v[((b*s.KSeq+j)*s.Heads+h)*s.VDim+d]
			}
		}
	}
	return o, lse
}

// inOtherDocument reports whether a key is outside of the document of a query of sample b.
func inOtherDocument(s *AttentionShape, b, query, key int) bool {
	at := b*s.SeqAll + query
	return s.Starts != nil && key < int(s.Starts[at]) || s.Ends != nil && key >= int(s.Ends[at])
}

// documentsOf returns the borders of documents of the given lengths, which fill rows of seq positions.
func documentsOf(seq int, lengths ...int) (starts, ends []int32) {
	for _, n := range lengths {
		at := len(starts)
		for range n {
			starts, ends = append(starts, int32(at%seq)), append(ends, int32(at%seq+n))
		}
	}
	return starts, ends
}

// withDocuments returns the shape with documents of the given lengths.
func withDocuments(s AttentionShape, lengths ...int) AttentionShape {
	s.Starts, s.Ends = documentsOf(s.SeqAll, lengths...)
	if s.Causal {
		s.Ends = nil
	}
	return s
}

// bloomSlopes computes ALiBi's slopes like Hugging Face's build_alibi_tensor.
func bloomSlopes(heads int) []float64 {
	closest := math.Pow(2, math.Floor(math.Log2(float64(heads))))
	powers := func(base float64, n, step int) (out []float64) {
		for i := range n {
			out = append(out, math.Pow(base, float64(1+i*step)))
		}
		return out
	}
	base := func(n float64) float64 { return math.Pow(2, -math.Pow(2, -(math.Log2(n)-3))) }
	slopes := powers(base(closest), int(closest), 1)
	return append(slopes, powers(base(2*closest), heads-int(closest), 2)...)
}

func TestSlopes(t *testing.T) {
	for _, heads := range []int{1, 2, 3, 8, 12, 14, 40, 112} {
		want := bloomSlopes(heads)
		for i := range heads {
			for _, s := range []AttentionShape{{Head0: i, HeadsAll: heads, GroupAll: 1}, {Group0: i, HeadsAll: 1,
				GroupAll: heads}} {
				if s.Slope(0, 0) != 0 {
					t.Error("a head without ALiBi has a slope")
				}
				s.Alibi = true
				near(t, name("slope ", i, " of ", heads), []float64{s.Slope(0, 0)}, want[i:i+1], 1e-15)
			}
		}
	}
	// A part of the heads has its part of the slopes.
	s := AttentionShape{Alibi: true, Head0: 3, HeadsAll: 6, Group0: 1, GroupAll: 4}
	if got, want := s.Slope(2, 1), bloomSlopes(24)[5*4+2]; math.Abs(got-want) > 1e-15 {
		t.Errorf("slope %v, want %v", got, want)
	}
}

// causal is the mask of autoregressive models.
var causal = AttentionMask{Causal: true}

// window is a causal mask of the last n keys.
func window(n int) AttentionMask { return AttentionMask{Causal: true, Window: n} }

var attentionCases = []struct {
	name string
	s    AttentionShape
}{
	{"one", AttentionShape{Batch: 1, Seq: 1, KSeq: 1, Heads: 1, Group: 1, Dim: 1, VDim: 1, Scale: 1}},
	{"none", AttentionShape{Batch: 0, Seq: 3, KSeq: 3, Heads: 1, Group: 1, Dim: 2, VDim: 2, Scale: 1}},
	{"no keys", AttentionShape{Batch: 1, Seq: 3, KSeq: 0, Heads: 1, Group: 1, Dim: 2, VDim: 2, Scale: 1}},
	{"full", AttentionShape{Batch: 2, Seq: 5, KSeq: 7, Heads: 3, Group: 1, Dim: 4, VDim: 6, Scale: 0.5}},
	{"causal", AttentionShape{Batch: 1, Seq: 11, KSeq: 11, Heads: 1, Group: 1, Dim: 3, VDim: 3, Scale: 0.6,
		Mask: causal}},
	{"grouped", AttentionShape{Batch: 2, Seq: 5, KSeq: 5, Heads: 2, Group: 3, Dim: 4, VDim: 4, Scale: 0.5,
		Mask: causal}},
	{"offset", AttentionShape{Batch: 1, Seq: 5, KSeq: 9, Heads: 1, Group: 2, Dim: 4, VDim: 4, Scale: 0.5, Mask: causal,
		Pos0: 6, KPos0: 2}},
	{"blind rows", AttentionShape{Batch: 1, Seq: 6, KSeq: 6, Heads: 1, Group: 1, Dim: 3, VDim: 2, Scale: 0.5,
		Mask: causal,
		Pos0: 0, KPos0: 3}},
	{"window", AttentionShape{Batch: 1, Seq: 37, KSeq: 37, Heads: 1, Group: 2, Dim: 5, VDim: 4, Scale: 0.4,
		Mask: window(6)}},
	{"past window", AttentionShape{Batch: 1, Seq: 8, KSeq: 5, Heads: 1, Group: 1, Dim: 3, VDim: 3, Scale: 0.4,
		Mask: window(4), Pos0: 4}},
	{"past window, blocks", AttentionShape{Batch: 1, Seq: 150, KSeq: 100, Heads: 2, Group: 1, Dim: 3, VDim: 3,
		Scale: 0.4, Mask: window(20), Pos0: 100}}, // no query sees a key of the second and third block
	{"dropout", AttentionShape{Batch: 2, Seq: 4, KSeq: 5, Heads: 2, Group: 2, Dim: 3, VDim: 3, Scale: 0.5, Mask: causal,
		Pos0: 3, KPos0: 1, Dropout: 0.4, Key: 9, Batch0: 2, Head0: 1, Group0: 2, HeadsAll: 4, GroupAll: 5, SeqAll: 20,
		KSeqAll: 21}},
	{"capped", AttentionShape{Batch: 2, Seq: 9, KSeq: 9, Heads: 2, Group: 2, Dim: 5, VDim: 3, Scale: 1.7, Softcap: 2.5,
		Mask: window(5)}},
	{"capped, both sides", AttentionShape{Batch: 1, Seq: 6, KSeq: 7, Heads: 1, Group: 1, Dim: 3, VDim: 3, Scale: 0.9,
		Softcap: 1}},
	{"alibi", AttentionShape{Batch: 2, Seq: 7, KSeq: 9, Heads: 2, Group: 1, Dim: 3, VDim: 4, Scale: 0.6, Mask: causal,
		Alibi: true,
		Pos0:  4, KPos0: 2, Head0: 1, HeadsAll: 3, GroupAll: 1}},
	{"alibi, both sides", AttentionShape{Batch: 1, Seq: 5, KSeq: 5, Heads: 1, Group: 2, Dim: 3, VDim: 4, Scale: 0.6,
		Softcap: 3, Alibi: true,
		Group0: 3, HeadsAll: 1, GroupAll: 5}},
	{"all at once", AttentionShape{Batch: 1, Seq: 35, KSeq: 300, Heads: 1, Group: 2, Dim: 3, VDim: 2, Scale: 2,
		Mask: window(270), Softcap: 4, Alibi: true,
		Pos0: 265, Dropout: 0.2, Key: 3, HeadsAll: 1, GroupAll: 2, SeqAll: 300, KSeqAll: 300}},
	{"blocks", AttentionShape{Batch: 1, Seq: 35, KSeq: 530, Heads: 1, Group: 1, Dim: 3, VDim: 2, Scale: 2,
		Mask: window(500), Pos0: 490, Dropout: 0.2, Key: 3, HeadsAll: 1, GroupAll: 1, SeqAll: 530, KSeqAll: 530}},
	{"documents", withDocuments(AttentionShape{Batch: 2, Seq: 13, KSeq: 13, Heads: 2, Group: 2, Dim: 3, VDim: 4,
		Scale: 0.5, Mask: causal, SeqAll: 13}, 5, 1, 7, 2, 11)},
	{"documents, both sides", withDocuments(AttentionShape{Batch: 2, Seq: 9, KSeq: 9, Heads: 1, Group: 2, Dim: 3,
		VDim: 3, Scale: 0.6, SeqAll: 9}, 9, 4, 5)},
	{"documents, other keys", withDocuments(AttentionShape{Batch: 1, Seq: 9, KSeq: 8, Heads: 1, Group: 1, Dim: 3,
		VDim: 3, Scale: 0.6, Mask: causal, Pos0: 11, KPos0: 3, SeqAll: 20}, 6, 7, 2, 5)},
	{"documents, all at once", withDocuments(AttentionShape{Batch: 1, Seq: 35, KSeq: 300, Heads: 1, Group: 2, Dim: 3,
		VDim: 2, Scale: 2, Mask: window(20), Softcap: 4, Alibi: true, Pos0: 265, Dropout: 0.2, Key: 3,
		HeadsAll: 1, GroupAll: 2, SeqAll: 300, KSeqAll: 300}, 270, 3, 27)},
	{"documents, blocks", withDocuments(AttentionShape{Batch: 1, Seq: 35, KSeq: 530, Heads: 1, Group: 1, Dim: 3,
		VDim: 2, Scale: 2, Mask: causal, Pos0: 490, SeqAll: 530}, 220, 275, 1, 34)},
}

func TestAttention(t *testing.T) { both(t, testAttention[float32], testAttention[float64]) }

func testAttention[F Float](t *testing.T, tol float64) {
	for _, c := range attentionCases {
		x := drawTensors[F](c.s)
		o, lse := naiveAttention(wide(x.q), wide(x.k), wide(x.v), c.s)
		Table[F]().Attention(x.o, x.lse, x.q, x.k, x.v, c.s)
		near(t, c.name+": o", x.o, o, tol)
		near(t, c.name+": lse", x.lse, lse, tol)
	}
}

func TestAttentionGrad(t *testing.T) {
	for _, c := range attentionCases {
		x, k := drawTensors[float64](c.s), Table[float64]()
		k.Attention(x.o, x.lse, x.q, x.k, x.v, c.s)
		k.AttentionGrad(x.dq, x.dk, x.dv, x.do, x.q, x.k, x.v, x.o, x.lse, c.s)

		y, k32 := drawTensors[float32](c.s), Table[float32]()
		k32.Attention(y.o, y.lse, y.q, y.k, y.v, c.s)
		k32.AttentionGrad(y.dq, y.dk, y.dv, y.do, y.q, y.k, y.v, y.o, y.lse, c.s)
		near(t, c.name+": dq f32", y.dq, x.dq, 5e-5)
		near(t, c.name+": dk f32", y.dk, x.dk, 5e-5)
		near(t, c.name+": dv f32", y.dv, x.dv, 5e-5)

		loss := func() float64 {
			o, _ := naiveAttention(x.q, x.k, x.v, c.s)
			return along(o, x.do)
		}
		slope(t, c.name+": dq", x.q, x.dq, loss)
		if c.s.KSeq < 100 { // larger shapes take too long
			slope(t, c.name+": dk", x.k, x.dk, loss)
			slope(t, c.name+": dv", x.v, x.dv, loss)
		}
	}
}

// Shapes of more than a panel, a block and a few blocks equal loops in float64.
func TestAttentionPanels(t *testing.T) {
	both(t, testAttentionPanels[float32], testAttentionPanels[float64])
}

func testAttentionPanels[F Float](t *testing.T, tol float64) {
	for _, s := range []AttentionShape{
		{Batch: 1, Seq: 150, KSeq: 150, Heads: 1, Group: 2, Dim: 37, VDim: 65, Scale: 0.3, Mask: causal},
		{Batch: 1, Seq: 290, KSeq: 330, Heads: 1, Group: 1, Dim: 33, VDim: 5, Scale: 0.3, Mask: window(75), Pos0: 60,
			KPos0: 10},
		{Batch: 9, Seq: 300, KSeq: 300, Heads: 1, Group: 1, Dim: 4, VDim: 3, Scale: 0.5},
		// two and four blocks of queries that share packed keys
		{Batch: 14, Seq: 300, KSeq: 300, Heads: 1, Group: 1, Dim: 17, VDim: 33, Scale: 0.5, Mask: window(20)},
		{Batch: 28, Seq: 300, KSeq: 300, Heads: 1, Group: 1, Dim: 17, VDim: 33, Scale: 0.5, Mask: window(20)},
		withDocuments(AttentionShape{Batch: 2, Seq: 600, KSeq: 600, Heads: 1, Group: 2, Dim: 37, VDim: 21, Scale: 0.3,
			Mask: causal, SeqAll: 600}, 257, 1, 2, 40, 300, 600),
		withDocuments(AttentionShape{Batch: 1, Seq: 600, KSeq: 600, Heads: 2, Group: 1, Dim: 16, VDim: 16, Scale: 0.3,
			SeqAll: 600}, 31, 290, 70, 209),
	} {
		x, k := drawTensors[F](s), Table[F]()
		o, lse := naiveAttention(wide(x.q), wide(x.k), wide(x.v), s)
		k.Attention(x.o, x.lse, x.q, x.k, x.v, s)
		near(t, "o", x.o, o, tol)
		near(t, "lse", x.lse, lse, tol)
		dq, dk, dv := naiveAttentionGrad(wide(x.q), wide(x.k), wide(x.v), wide(x.do), o, lse, s)
		k.AttentionGrad(x.dq, x.dk, x.dv, x.do, x.q, x.k, x.v, x.o, x.lse, s)
		near(t, "dq", x.dq, dq, 5*tol)
		near(t, "dk", x.dk, dk, 5*tol)
		near(t, "dv", x.dv, dv, 5*tol)
	}
}

// naiveAttentionGrad computes AttentionGrad query by query, if scores are only scaled.
func naiveAttentionGrad(q, k, v, do, o, lse []float64, s AttentionShape) (dq, dk, dv []float64) {
	dq, dk, dv = make([]float64, len(q)), make([]float64, len(k)), make([]float64, len(v))
	for r := range len(lse) {
		h, i, b := r/s.Group%s.Heads, r/s.Group/s.Heads%s.Seq, r/s.Group/s.Heads/s.Seq
		q, do, dq := q[r*s.Dim:][:s.Dim], do[r*s.VDim:][:s.VDim], dq[r*s.Dim:][:s.Dim]
		for j := range s.KSeq {
			if back := s.Pos0 + i - s.KPos0 - j; s.Causal && back < 0 || s.Window > 0 && back >= s.Window ||
				inOtherDocument(&s, b, s.Pos0+i, s.KPos0+j) {
				continue
			}
			at := (b*s.KSeq+j)*s.Heads + h
			k, v, dk, dv := k[at*s.Dim:][:s.Dim], v[at*s.VDim:][:s.VDim], dk[at*s.Dim:][:s.Dim], dv[at*s.VDim:][:s.VDim]
			p := math.Exp(s.Scale*along(q, k) - lse[r])
			ds := p * (along(do, v) - along(do, o[r*s.VDim:][:s.VDim])) * s.Scale
			for d := range s.VDim {
				dv[d] += p * do[d]
			}
			for d := range s.Dim {
				dq[d] += ds * k[d]
				dk[d] += ds * q[d]
			}
		}
	}
	return dq, dk, dv
}

// The gradients of two halves of the keys, with o and lse of all keys, add up to the gradient of all.
func TestAttentionGradOfPart(t *testing.T) {
	s := AttentionShape{Batch: 1, Seq: 7, KSeq: 8, Heads: 2, Group: 2, Dim: 3, VDim: 5, Scale: 0.5, Mask: causal}
	x, k := drawTensors[float64](s), Table[float64]()
	k.Attention(x.o, x.lse, x.q, x.k, x.v, s)
	k.AttentionGrad(x.dq, x.dk, x.dv, x.do, x.q, x.k, x.v, x.o, x.lse, s)
	part := s
	part.KSeq = 4
	dq, dk, dv := make([]float64, len(x.dq)), make([]float64, len(x.dk)), make([]float64, len(x.dv))
	for i := range 2 {
		part.KPos0 = 4 * i
		at, to := len(dk)/2*i, len(dk)/2*(i+1)
		vat, vto := len(dv)/2*i, len(dv)/2*(i+1)
		half := make([]float64, len(dq))
		k.AttentionGrad(half, dk[at:to], dv[vat:vto], x.do, x.q, x.k[at:to], x.v[vat:vto], x.o, x.lse, part)
		k.Add(dq, half)
	}
	near(t, "dq", dq, x.dq, 1e-13)
	near(t, "dk", dk, x.dk, 1e-13)
	near(t, "dv", dv, x.dv, 1e-13)
}

func TestAttentionPassesNaN(t *testing.T) {
	s := AttentionShape{Batch: 1, Seq: 2, KSeq: 2, Heads: 1, Group: 1, Dim: 1, VDim: 1, Scale: 1}
	nan := math.NaN()
	o, lse := make([]float64, 2), make([]float64, 2)
	Table[float64]().Attention(o, lse, []float64{1, nan}, []float64{1, 2}, []float64{3, 4}, s)
	if math.IsNaN(o[0]) || !math.IsNaN(o[1]) || !math.IsNaN(lse[1]) {
		t.Errorf("o = %v, lse = %v", o, lse)
	}
}

func BenchmarkAttention(b *testing.B) {
	s := AttentionShape{Batch: 1, Seq: 256, KSeq: 256, Heads: 4, Group: 1, Dim: 64, VDim: 64, Scale: 0.125,
		Mask: causal}
	x, k := drawTensors[float32](s), Table[float32]()
	b.Run("forward", func(b *testing.B) {
		for b.Loop() {
			k.Attention(x.o, x.lse, x.q, x.k, x.v, s)
		}
	})
	b.Run("gradient", func(b *testing.B) {
		for b.Loop() {
			k.AttentionGrad(x.dq, x.dk, x.dv, x.do, x.q, x.k, x.v, x.o, x.lse, s)
		}
	})
}

// spread returns rows of cols elements that begin every pitch elements, with NaN between them.
func spread[F Float](x []F, cols, pitch int) []F {
	rows := len(x) / cols
	out := make([]F, (rows-1)*pitch+cols)
	for i := range out {
		out[i] = F(math.NaN())
	}
	for i := range rows {
		copy(out[i*pitch:], x[i*cols:][:cols])
	}
	return out
}

// Where queries, keys and values lie does not change a bit of the results, and nothing between them is written.
func TestAttentionSideBySide(t *testing.T) {
	t.Run("f32", testSideBySide[float32])
	t.Run("f64", testSideBySide[float64])
}

func testSideBySide[F Float](t *testing.T) {
	for _, s := range []AttentionShape{
		{Batch: 2, Seq: 70, KSeq: 90, Heads: 2, Group: 1, Dim: 6, VDim: 6, Scale: 0.4, Mask: causal, Pos0: 20},
		{Batch: 1, Seq: 300, KSeq: 300, Heads: 2, Group: 2, Dim: 16, VDim: 16, Scale: 0.2, Mask: causal},
	} {
		own, apart := drawTensors[F](s), drawTensors[F](s)
		table, n := Table[F](), s.Heads*s.Group
		table.Attention(own.o, own.lse, own.q, own.k, own.v, s)
		table.AttentionGrad(own.dq, own.dk, own.dv, own.do, own.q, own.k, own.v, own.o, own.lse, s)
		pitch := 3 * n * s.Dim
		for _, x := range []struct {
			x    *[]F
			cols int
		}{{&apart.q, n * s.Dim}, {&apart.dq, n * s.Dim}, {&apart.k, s.Heads * s.Dim}, {&apart.dk, s.Heads * s.Dim},
			{&apart.v, s.Heads * s.VDim}, {&apart.dv, s.Heads * s.VDim}} {
			*x.x = spread(*x.x, x.cols, pitch)
		}
		shape := s
		shape.Pitch = pitch
		table.Attention(apart.o, apart.lse, apart.q, apart.k, apart.v, shape)
		table.AttentionGrad(apart.dq, apart.dk, apart.dv, apart.do, apart.q, apart.k, apart.v, apart.o, apart.lse,
			shape)
		for name, pair := range map[string][2][]F{"o": {apart.o, own.o}, "lse": {apart.lse, own.lse},
			"dq": {apart.dq, spread(own.dq, n*s.Dim, pitch)}, "dk": {apart.dk, spread(own.dk, s.Heads*s.Dim, pitch)},
			"dv": {apart.dv, spread(own.dv, s.Heads*s.VDim, pitch)}} {
			for i, want := range pair[1] {
				if got := pair[0][i]; got != want && !(math.IsNaN(float64(got)) && math.IsNaN(float64(want))) {
					t.Fatalf("%+v: %s[%d] is %v, but %v if each lies for itself", s, name, i, got, want)
				}
			}
		}
	}
}

// Packed documents have the results that each has alone, to the last bits of rounding.
func TestAttentionOfDocumentsAlone(t *testing.T) {
	both(t, testDocumentsAlone[float32], testDocumentsAlone[float64])
}

func testDocumentsAlone[F Float](t *testing.T, tol float64) {
	lengths := []int{70, 1, 260, 13}
	for _, mask := range []AttentionMask{causal, {}} {
		s := withDocuments(AttentionShape{Batch: 1, Seq: 344, KSeq: 344, Heads: 2, Group: 2, Dim: 6, VDim: 5,
			Scale: 0.4, Mask: mask, SeqAll: 344}, lengths...)
		x, k := drawTensors[F](s), Table[F]()
		k.Attention(x.o, x.lse, x.q, x.k, x.v, s)
		k.AttentionGrad(x.dq, x.dk, x.dv, x.do, x.q, x.k, x.v, x.o, x.lse, s)
		at := 0
		for _, n := range lengths {
			one := s
			one.Seq, one.KSeq, one.Starts, one.Ends = n, n, nil, nil
			y := drawTensors[F](one)
			rows := s.Heads * s.Group
			for _, c := range []struct {
				to, from []F
				width    int
			}{{y.q, x.q, rows * s.Dim}, {y.k, x.k, s.Heads * s.Dim}, {y.v, x.v, s.Heads * s.VDim},
				{y.do, x.do, rows * s.VDim}} {
				copy(c.to, c.from[at*c.width:])
			}
			k.Attention(y.o, y.lse, y.q, y.k, y.v, one)
			k.AttentionGrad(y.dq, y.dk, y.dv, y.do, y.q, y.k, y.v, y.o, y.lse, one)
			for _, c := range []struct {
				name      string
				got, want []F
				width     int
			}{{"o", x.o, y.o, rows * s.VDim}, {"lse", x.lse, y.lse, rows}, {"dq", x.dq, y.dq, rows * s.Dim},
				{"dk", x.dk, y.dk, s.Heads * s.Dim}, {"dv", x.dv, y.dv, s.Heads * s.VDim}} {
				near(t, c.name, c.got[at*c.width:(at+n)*c.width], wide(c.want), 5*tol)
			}
			at += n
		}
	}
}
