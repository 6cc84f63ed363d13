// Shared by the attention kernels: the shape, visibility, scores and their gradient, as in runtime/cpu
// (AttentionShape).
#pragma once
#include "element.cuh"

#define LOG2E 1.44269504088896340736f

// Attend is cpu.AttentionShape; AttentionShape in attention.go encodes it. Dropout keeps a weight if its
// number in key's stream is at least least.
struct Attend {
	u64 key, least;
	double scale, softcap, keep;
	int batch, seq, kseq, heads, group, dim, vdim;
	int causal, window, more, alibi, drops;
	int pos, half, then, kpos, khalf, kthen;
	// keyAddressed: key is the address of the key
	int batch0, head0, group0, headsAll, groupAll, seqAll, kseqAll, keyAddressed;
	int qheads, kheads; // heads from one position of q and dq, and of k, v, dk and dv to the next
};

// queryHead and keyHead return the number of a position's head in q, and in k and v.
__device__ inline i64 queryHead(const Attend& s, int b, int i, int hg) { return ((i64)b * s.seq + i) * s.qheads + hg; }
__device__ inline i64 keyHead(const Attend& s, int b, int j, int h) { return ((i64)b * s.kseq + j) * s.kheads + h; }

// whereOf returns the global index of local index i of a part that starts at at and, if half is not 0,
// continues from half on at then.
__device__ inline int whereOf(int at, int half, int then, int i) { return half > 0 && i >= half ? then + i - half : at + i; }
// under returns how many of n local indices are below p in the global order.
__device__ inline int under(int at, int half, int then, int p, int n) {
	if (half == 0) return max(0, min(p - at, n));
	return max(0, min(p - at, half)) + max(0, min(p - then, n - half));
}
__device__ inline int queryAt(const Attend& s, int i) { return whereOf(s.pos, s.half, s.then, i); }
__device__ inline int keyAt(const Attend& s, int j) { return whereOf(s.kpos, s.khalf, s.kthen, j); }

// sees reports whether the query at position i sees the key at position j.
__device__ inline bool sees(const Attend& s, int i, int j) { return (!s.causal || j <= i) && (s.window == 0 || j > i - s.window); }

// firstKey and endKey bound the keys that any of the queries from first to last sees.
__device__ inline int firstKey(const Attend& s, int first) {
	return s.window > 0 ? under(s.kpos, s.khalf, s.kthen, queryAt(s, first) + 1 - s.window, s.kseq) : 0;
}
__device__ inline int endKey(const Attend& s, int last) {
	return s.causal ? under(s.kpos, s.khalf, s.kthen, queryAt(s, last) + 1, s.kseq) : s.kseq;
}
// firstQuery and endQuery bound the queries that see any of the keys from first to last.
__device__ inline int firstQuery(const Attend& s, int first) {
	return s.causal ? under(s.pos, s.half, s.then, keyAt(s, first), s.seq) : 0;
}
__device__ inline int endQuery(const Attend& s, int last) {
	return s.window > 0 ? under(s.pos, s.half, s.then, keyAt(s, last) + s.window, s.seq) : s.seq;
}

// Head is a head of a sample: b, h and g, the position of the first weight of row 0 in the key's stream, the key, and
// ALiBi's slope, also in units of log 2.
struct Head {
	int b, h, g;
	u64 weights, key;
	double slope;
	float slope2;
};

// headOf returns query head h*group+g = hg of sample b.
__device__ inline Head headOf(const Attend& s, int b, int hg) {
	Head d = {b, hg / s.group, hg % s.group, 0, s.drops && s.keyAddressed ? *(const u64*)s.key : s.key, 0, 0};
	d.weights = (((u64)(s.batch0 + b) * s.headsAll + s.head0 + d.h) * s.groupAll + s.group0 + d.g) * s.seqAll;
	d.weights = d.key + RANDOM_STEP * (d.weights * s.kseqAll + 1);
	if (s.alibi) {
		const int all = s.headsAll * s.groupAll, i = (s.head0 + d.h) * s.groupAll + s.group0 + d.g;
		int n = 1;
		while (2 * n <= all) n *= 2;
		d.slope = i < n ? exp2(-8.0 * (i + 1) / n) : exp2(-8.0 * (2 * (i - n) + 1) / (2 * n));
		d.slope2 = (float)(d.slope * LOG2E);
	}
	return d;
}

// Extras are what a kernel adds to plain scores: a sum of caps (soft caps), slopes (ALiBi) and drops
// (dropout), or asks, with which it asks the shape for each element.
enum Extras { plain = 0, caps = 1, slopes = 2, drops = 4, asks = 8 };

// has reports whether a kernel with extras E applies one of them, of which the shape says isUsed.
template <int E> __device__ inline bool has(Extras one, bool isUsed) { return E == asks ? isUsed : (E & one) != 0; }

// score returns the score of the dot product of the query at i and the key at j.
template <class A> __device__ inline A score(const Attend& s, const Head& d, A x, int i, int j) {
	x *= (A)s.scale;
	if (s.softcap > 0) x = softcap(x, (A)s.softcap);
	return s.alibi ? x + (A)(d.slope * (j - i)) : x;
}

// kept returns the factor of dropout for the weight of the query at i and the key at j.
template <int E, class A> __device__ inline A kept(const Attend& s, const Head& d, int i, int j) {
	if (!has<E>(drops, s.drops)) return 1;
	const u64 at = d.weights + RANDOM_STEP * ((u64)(u32)i * (u32)s.kseqAll + (u32)j);
	return randomAt(d.key, at) >= s.least ? (A)s.keep : 0;
}

// weigh replaces the dot product x of the query at i and the key at j, with weight p, and dp = do·v: x
// becomes the weight times the factor of dropout, and dp the gradient of x, ds = p*(z*dp -
// dot)*scale*softcap'.
template <int E, class A> __device__ inline void weigh(const Attend& s, const Head& d, A& x, A& dp, A p, A dot, int i, int j) {
	const A z = kept<E, A>(s, d, i, j);
	A ds = p * (z * dp - dot) * (A)s.scale;
	if (has<E>(caps, s.softcap > 0)) ds *= softcapGrad(x * (A)s.scale, (A)s.softcap);
	x = p * z;
	dp = ds;
}

// weighSeen is weigh with p = exp(score - lse), or zero if the query does not see the key.
template <class A> __device__ inline void weighSeen(const Attend& s, const Head& d, A& x, A& dp, A lse, A dot, int i, int j) {
	const A none = -(A)__uint_as_float(0x7f800000u);
	if (lse == none || !sees(s, i, j)) x = dp = 0;
	else weigh<asks>(s, d, x, dp, expOf(score(s, d, x, i, j) - lse), dot, i, j);
}
