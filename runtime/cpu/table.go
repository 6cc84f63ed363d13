package cpu

import (
	"github.com/planc-dev/planc/runtime/cpu/attention"
	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/gemm"
	"github.com/planc-dev/planc/runtime/num"
)

// Kernels is the table through which kernels are called. Every field of its groups is set. Its comment has its
// loop, in which mean, sum and max run over the named operand.
type Kernels[F Float] struct {
	Matmuls[F]
	Sums[F]
	Norms[F]
	Vocabulary[F]
	Attentions[F]
	Experts[F]
	Optimizers[F]
}

// Matmuls are the kernels that multiply matrices.
type Matmuls[F Float] struct {
	// MatMul computes
	//	for i, j := range [m, n] { c[i,j] = sum_k op(a)[i,k] * op(b)[k,j] (+ c[i,j] if acc) }
	// where op(a) is a [m,k], or the transpose of a [k,m] if ta; op(b) is b [k,n], or the transpose of b [n,k] if tb.
	// The bits of an element depend only on its row of op(a) and its column of op(b). On AMX, matmuls of float32 with
	// 32 terms and more split each number into three bfloat16s (gemm/split.go). Sums are as exact as those of
	// multiply-adds, but parts and sums below 2^-126 count as zero.
	MatMul func(c, a, b []F, m, n, k int, ta, tb, acc bool)
	// MatMulBF16 computes
	//	for i, j := range [m, n] { c[i,j] = sum_k op(a)[i,k] * op(b)[k,j] (+ c[i,j] if acc) }
	// with op as in MatMul, for bfloat16 operands, with sums in F. With instructions that multiply bfloat16 (AMX;
	// AVX512-BF16 except on Intel), numbers below 2^-126 count as zero. Otherwise blocks of the operands are widened.
	MatMulBF16 func(c []F, a, b []num.BF16, m, n, k int, ta, tb, acc bool)
	// MatMulRoundBF16 computes
	//	for i, j := range [m, n] { c[i,j] = bfloat16(sum_k op(a)[i,k] * op(b)[k,j]) }
	// with the sums of MatMulBF16.
	MatMulRoundBF16 func(c, a, b []num.BF16, m, n, k int, ta, tb bool)

	// MatMul8 computes
	//	for g := range groups { c[g] = MatMul of a[g] and b[g] rounded to FP8 formats (+ c[g] if acc) }
	// where groups = 0 means one matmul. Each tensor, with all its groups, is scaled by a power of two that follows
	// from its absolute maximum ([num.FP8Format.Scale]). a and b must be copies, because they are rounded in place.
	// Sums are in F.
	MatMul8 func(c, a, b []F, groups, m, n, k int, ta, tb, acc bool, as, bs num.FP8Format)

	// MatMulOn computes
	//	for i, j := range [m, n] { c[i,j] = from[i,j] + sum_k op(a)[i,k] * op(b)[k,j] }
	// with op as in MatMul. from has m rows of n elements, or one row for all. It does not overlap c.
	MatMulOn func(c, from, a, b []F, m, n, k int, ta, tb bool)

	// MatMulThen computes
	//	for i, j := range [m, n] {
	//		sums[i,j] = sum_k op(a)[i,k] * op(b)[k,j] (+ from[i,j])
	//		c[i,j] = do(sums[i,j], x[i,j])
	//	}
	// with op and from as in MatMulOn, and an element-wise do without a number of its own. sums may be nil if they are
	// not needed, from if there is none, and x if do has one operand. c and sums overlap nothing else.
	MatMulThen func(c, sums, from, x, a, b []F, do Do, m, n, k int, ta, tb bool)
}

// Sums are the kernels that sum rows, columns and tensors.
type Sums[F Float] struct {
	// SumRows computes
	//	for j := range cols { out[j] = sum_i x[i,j] (+ out[j] if acc) }
	SumRows func(out, x []F, rows, cols int, acc bool)
	// SumCols computes
	//	for i := range rows { out[i] = sum_j x[i,j] (+ out[i] if acc) }
	SumCols func(out, x []F, rows, cols int, acc bool)
	// SumSquares computes
	//	for i := range x { s += x[i]^2 }
	SumSquares func(x []F) float64
	// Add computes
	//	for i := range dst { dst[i] += src[i] }
	Add func(dst, src []F)
}

// Norms are the kernels of layer norm and RMS norm.
type Norms[F Float] struct {
	// LayerNorm computes
	//	for i := range rows { y[i] = (x[i]-mean)*rstd * gain + bias; rstd = 1/sqrt(mean((x[i]-mean)^2) + eps) }
	// with the mean of x[i]. bias may be nil. y may be x.
	LayerNorm func(y, x, gain, bias []F, rows, cols int, eps float64)
	// LayerNormDX computes
	//	for i := range rows { g = dy[i]*gain; dx[i] = rstd * (g - mean(g) - xhat*mean(g*xhat)) }
	// with xhat = (x[i]-mean)*rstd, recomputed. dx may be dy or x.
	LayerNormDX func(dx, dy, x, gain []F, rows, cols int, eps float64)
	// LayerNormDGain computes
	//	for j := range cols { dgain[j] = sum_i dy[i,j]*xhat[i,j] (+ dgain[j] if acc) }
	// The gradient of bias is SumRows of dy.
	LayerNormDGain func(dgain, dy, x []F, rows, cols int, eps float64, acc bool)
	// RMSNorm computes
	//	for i := range rows { y[i] = x[i]*r * gain; r = 1/sqrt(mean(x[i]^2) + eps) }
	// with 1+gain in place of gain if unit. y may be x.
	RMSNorm func(y, x, gain []F, rows, cols int, eps float64, unit bool)
	// RMSNormDX computes
	//	for i := range rows { g = dy[i]*gain; dx[i] = r * (g - x[i]*r * mean(g * x[i]*r)) }
	// with 1+gain in place of gain if unit. dx may be dy or x.
	RMSNormDX func(dx, dy, x, gain []F, rows, cols int, eps float64, unit bool)
	// RMSNormDGain computes
	//	for j := range cols { dgain[j] = sum_i dy[i,j]*x[i,j]*r[i] (+ dgain[j] if acc) }
	RMSNormDGain func(dgain, dy, x []F, rows, cols int, eps float64, acc bool)
}

// Vocabulary has the kernels of the embedding and the loss.
type Vocabulary[F Float] struct {
	// Embed computes
	//	for i := range ids { y[i] = table[ids[i]-lo] if lo <= ids[i] < lo+n, else 0 }
	// with rows of cols elements.
	Embed func(y, table []F, ids []int32, cols, lo, n int)
	// EmbedGrad computes
	//	for i := range ids { dtable[ids[i]-lo] += dy[i] if lo <= ids[i] < lo+n }
	// after setting all of dtable to zero unless acc.
	EmbedGrad func(dtable, dy []F, ids []int32, cols, lo, n int, acc bool)
	// EmbedGradBut computes EmbedGrad except for the row of one id:
	//	for i := range ids { dtable[ids[i]-lo] += dy[i] if lo <= ids[i] < lo+n and ids[i] != but }
	EmbedGradBut func(dtable, dy []F, ids []int32, but, cols, lo, n int, acc bool)

	// LogSumExp computes
	//	for i := range rows { l[i] = max + log sum_{j < valid} exp(x[i,j]-max) }
	// with the maximum of x[i,:valid]; -Inf if valid is 0.
	LogSumExp func(l, x []F, rows, cols, valid int)
	// LogSumExpGrad computes
	//	for i, j := range [rows, cols] { dx[i,j] = dl[i] * exp(x[i,j]-l[i]) if j < valid, else 0 }
	// and 0 if l[i] is -Inf. dx may be x.
	LogSumExpGrad func(dx, dl, x, l []F, rows, cols, valid int)
	// Pick computes
	//	for i := range rows { y[i] = x[i, ids[i]-lo] if lo <= ids[i] < lo+n, else 0 }
	Pick func(y, x []F, ids []int32, rows, cols, lo, n int)
	// PickGrad computes
	//	for i, j := range [rows, cols] { dx[i,j] = dy[i] if j = ids[i]-lo and lo <= ids[i] < lo+n, else 0 }
	PickGrad func(dx, dy []F, ids []int32, rows, cols, lo, n int)

	// CrossEntropy computes
	//	for i, j := range [rows, cols] {
	//		ce[i] = lse - x[i,ids[i]]; dx[i,j] = dl[i] * (exp(x[i,j]-lse) - 1 if j = ids[i], else exp(x[i,j]-lse))
	//	}
	// with lse the LogSumExp of x[i,:valid]. If lse is -Inf, the exponentials are 0. For an id that is not a valid
	// column, ce[i] is lse and no 1 is subtracted. dx[i,j] is 0 for j >= valid. dx may be x.
	CrossEntropy func(ce, dx, dl, x []F, ids []int32, rows, cols, valid int)
}

// Attentions are the kernels of attention and its positions.
type Attentions[F Float] struct {
	// RoPE computes
	//	for b, s, h, j := range [batch, seq, heads, turn/2] {
	//		a = (global position of s) * scaled(theta^(-2j/turn))
	//		y[b,s,h,j]        = x[b,s,h,j]*c - x[b,s,h,j+turn/2]*d;  c = scale's attention * cos(a)
	//		y[b,s,h,j+turn/2] = x[b,s,h,j+turn/2]*c + x[b,s,h,j]*d;  d = scale's attention * sin(a)
	//	}
	// in Hugging Face's half-split order, with -a in place of a if inverse, which is the gradient. Elements of dim from
	// turn on are copied. turn is even. y may be x.
	RoPE func(y, x []F, batch, seq, heads, dim, turn int, at Where, theta float64, scale RopeScale, inverse bool)

	// RoPEPart computes RoPE of a part of each row:
	//	for b, s, h, j := range [r.Batch, r.Seq, r.Heads, r.Turn/2] {
	//		y[b,s,h,i] = x[b,s,h,i]*c - x[b,s,h,k]*d; y[b,s,h,k] = x[b,s,h,k]*c + x[b,s,h,i]*d
	//	}
	// with c and d as in RoPE, i = r.From+j and k = i+r.Turn/2 or, with Pairs, i = r.From+2j and k = i+1.
	RoPEPart func(y, x []F, r RopeRows, at Where, theta float64, scale RopeScale, inverse bool)

	// Attention computes
	//	for each query i of (batch, head, group) {
	//		p_j = exp(s_ij - lse_i), lse_i = log sum_j exp(s_ij), j over visible keys
	//		s_ij = softcap(scale*q_i·k_j) + slope*(position of j - position of i)
	//		o_i = sum_j p_j * z_ij * v_j
	//	}
	// softcap(s) is cap*tanh(s/cap), or s without a cap. slope is the head's with ALiBi, else 0.
	// q [batch, seq, heads, group, dim], k [batch, k_seq, heads, dim], v [batch, k_seq, heads, vdim],
	// o [batch, seq, heads, group, vdim], lse [batch, seq, heads, group]. z is 1; with dropout it is 1/(1-p) for kept
	// weights and 0 for the others. A query that sees no key has o = 0 and lse = -Inf. Keys and values must be finite,
	// including masked ones.
	Attention func(o, lse, q, k, v []F, s AttentionShape)
	// AttentionGrad computes
	//	for each query i of (batch, head, group), each visible key j {
	//		ds = p_j * (z_ij * do_i·v_j - do_i·o_i) * scale * softcap'(scale*q_i·k_j)
	//		dq_i += ds*k_j; dk_j += ds*q_i; dv_j += p_j*z_ij*do_i
	//	}
	// from zero, with p and z recomputed. If o and lse belong to more keys than are passed, the result is the
	// contribution of the passed keys to dq, and their dk and dv.
	AttentionGrad func(dq, dk, dv, do, q, k, v, o, lse []F, s AttentionShape)
	// AttentionBF16 computes Attention of bfloat16,
	//	for each query i of (batch, head, group) { o_i = sum_j bfloat16(p_j * z_ij) * v_j }
	// on AMX if dim and vdim are even. There, p_j is relative to the largest score so far until o is divided by the sum
	// of the unrounded weights, and numbers below 2^-126 count as zero in matmuls. Otherwise nothing is rounded, and
	// the bits are those of Attention on operands widened into wide, which has space for q, k and v.
	AttentionBF16 func(o, lse []F, q, k, v []num.BF16, wide []F, s AttentionShape)
	// AttentionGradBF16 computes AttentionGrad in the same way,
	//	for each query i of (batch, head, group), each visible key j {
	//		dq_i += bfloat16(ds)*k_j; dk_j += bfloat16(ds)*q_i; dv_j += bfloat16(p_j*z_ij)*do_i
	//	}
	// with ds as in AttentionGrad. wide has space for do, q, k, v and o.
	AttentionGradBF16 func(dq, dk, dv []F, do, q, k, v, o []num.BF16, lse, wide []F, s AttentionShape)
}

// Experts are the kernels of mixtures of experts.
type Experts[F Float] struct {
	// Route computes
	//	for i := range rows {
	//		p = softmax(x[i]), or sigmoid of each
	//		index[i] = experts of the largest p + bias in the best groups, in descending order, possibly changed by
	//		s.Chosen w[i,c] = scale * p[index[i,c]] (/ (eps + sum_c p[index[i,c]]) if share)
	//	}
	// bias may be nil.
	Route func(w []F, index []int32, x, bias []F, s RouteShape)
	// RouteGrad computes
	//	for i, e := range [rows, experts] { dx[i,e] = sum_c dw[i,c] * the derivative of w[i,c] by x[i,e] }
	// for the same choices.
	RouteGrad func(dx, dw, x, w []F, index []int32, s RouteShape)
	// Tally computes
	//	for g := range groups, each of so many choices { n[g,e] = how many of them are e, for each expert }
	Tally func(n []F, index []int32, groups, choices, experts int)
	// Balance computes
	//	for g := range groups { y[g] = scale * sum_{i of g} sum_e p[i,e] * n[g,e] }
	// with p[i] the softmax(x[i]), or the sigmoids of x[i] divided by their sum.
	Balance func(y, x, n []F, s BalanceShape)
	// BalanceGrad computes
	//	for i, e := range [tokens, experts] { dx[i,e] = dy[g] * the derivative of y[g] by x[i,e] }
	// with g the group of i. The derivative is p[i,e] * scale * (n[g,e] - sum_f p[i,f]*n[g,f]), times 1-sigmoid(x[i,e])
	// for sigmoids.
	BalanceGrad func(dx, dy, x, n []F, s BalanceShape)
	// Dispatch computes
	//	for i, c := range [tokens, choices] { y[index[i,c], slot of (i,c)] = x[i] }
	// for choices that have a slot in this round; other slots are 0.
	Dispatch func(y, x []F, index []int32, s SlotShape)
	// Combine computes
	//	for i, c := range [tokens, choices] { y[i] += x[index[i,c], slot of (i,c)] }
	// for choices that have a slot in this round, starting from 0 in the first round.
	Combine func(y, x []F, index []int32, s SlotShape)
	// Deal computes
	//	for i, c := range [tokens, choices] { y[index[i,c], slot of (i,c)] = w[i,c] }
	// for choices that have a slot in this round; other slots are 0.
	Deal func(y, w []F, index []int32, s SlotShape)
	// Collect computes
	//	for i, c := range [tokens, choices] { w[i,c] = y[index[i,c], slot of (i,c)] }
	// for choices that have a slot in this round; the first round sets the others to 0.
	Collect func(w, y []F, index []int32, s SlotShape)
}

// Optimizers are the kernels of dropout and of optimizer steps.
type Optimizers[F Float] struct {
	// Dropout computes
	//	for i := range y { y[i] = x[i]/(1-p) if Keep(key, view's global index of i, p), else 0 }
	// y may be x. It is its own gradient.
	Dropout func(y, x []F, p float64, key uint64, view GlobalView)

	// AdamW computes
	//	for i := range p {
	//		p *= 1 - lr*wd; m = β1*m + (1-β1)*scale*g; v = β2*v + (1-β2)*(scale*g)^2
	//		p -= lr * m/(1-β1^t) / (sqrt(v/(1-β2^t)) + eps)
	//	}
	AdamW func(p, g, m, v []F, o AdamStep)
	// Adam computes AdamW with the weight decay added to the gradient:
	//	for i := range p { g' = scale*g + wd*p; m, v, p as in AdamW, with wd = 0 and g' in place of scale*g }
	Adam func(p, g, m, v []F, o AdamStep)
	// SGD computes
	//	for i := range p { m = momentum*m + scale*g + wd*p; p -= lr*m }
	// m starts as zero, and may be nil if momentum is 0.
	SGD func(p, g, m []F, o SGDStep)
}

// The tables that Use fills.
var (
	table32 Kernels[float32]
	table64 Kernels[float64]
)

// Table returns the table of an element type, always the same one, which Use fills. F must be float32 or
// float64 itself.
func Table[F Float]() *Kernels[F] {
	switch t := any((*Kernels[F])(nil)).(type) {
	case *Kernels[float32]:
		return any(&table32).(*Kernels[F])
	case *Kernels[float64]:
		return any(&table64).(*Kernels[F])
	default:
		_ = t
		panic("cpu: kernels exist only for float32 and float64")
	}
}

// portable returns the table of this package's kernels in plain Go.
func portable[F Float]() Kernels[F] {
	return Kernels[F]{
		Matmuls[F]{
			MatMul: gemm.MatMul[F], MatMulBF16: gemm.MatMulWidened[F], MatMulRoundBF16: gemm.MatMulWidenedRounded[F],
			MatMulOn: gemm.MatMulOn[F], MatMulThen: matMulThen[F], MatMul8: matMul8[F],
		},
		Sums[F]{SumRows: sumRows[F], SumCols: sumCols[F], SumSquares: sumSquares[F], Add: elem.Add[F]},
		Norms[F]{
			LayerNorm: layerNorm[F], LayerNormDX: layerNormDX[F], LayerNormDGain: layerNormDGain[F],
			RMSNorm: rmsNorm[F], RMSNormDX: rmsNormDX[F], RMSNormDGain: rmsNormDGain[F],
		},
		Vocabulary[F]{
			Embed: embed[F], EmbedGrad: embedGrad[F], EmbedGradBut: embedGradBut[F],
			LogSumExp: logSumExp[F], LogSumExpGrad: logSumExpGrad[F], Pick: pick[F], PickGrad: pickGrad[F],
			CrossEntropy: crossEntropy[F],
		},
		Attentions[F]{
			RoPE: rope[F], RoPEPart: ropePart[F], Attention: attention.Forward[F], AttentionGrad: attention.Gradient[F],
			AttentionBF16: attention.ForwardWidened[F], AttentionGradBF16: attention.GradientWidened[F],
		},
		Experts[F]{
			Route: route[F], RouteGrad: routeGrad[F], Tally: tally[F], Balance: balance[F], BalanceGrad: balanceGrad[F],
			Dispatch: dispatch[F], Combine: combine[F], Deal: deal[F], Collect: collect[F],
		},
		Optimizers[F]{Dropout: dropout[F], AdamW: adamW[F], Adam: adam[F], SGD: sgd[F]},
	}
}
