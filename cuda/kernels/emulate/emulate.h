// CUDA C++ for a C++ compiler. The threads of a block are fibers with one stack each, and blocks run one
// after the other. Fibers switch only at barriers and warp operations. Each warp runs as far ahead of the
// others as possible, in the requested order, so that a result that depends on the order reveals a race.
// Shared memory is NaN until a block writes it.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#ifdef EMULATE_RACES // serve.h and shadow.h detect races in shared memory
#include "races.h"
#else
namespace races {
inline int thread;
inline void beginBlock() {}
inline void share(const char*, void*, size_t, size_t) {}
inline void barrier() {}
inline void warpBarrier(int) {}
} // namespace races
#endif

#ifndef __global__
#define __global__
#endif
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__

struct dim3 { unsigned x, y, z; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) double2 { double x, y; };
using std::max;
using std::min;

namespace emulate {

const size_t stackBytes = 128 << 10; // of a fiber

enum State { ready, atWarp, atWarpBarrier, atBlock, done };

struct Fiber {
	dim3 index;
	State state;
	ucontext_t start;
	jmp_buf here;
	bool begun;
	std::unique_ptr<char[]> stack;
};

inline dim3 grid, block, blockNow;
inline std::vector<Fiber> fibers;
inline Fiber* self;
inline jmp_buf scheduler;
inline ucontext_t main;
inline long epoch; // number of the block
inline uint32_t orderNow;
inline uint64_t lane[1024];
inline void (*body)(void**);
inline void** arguments;
inline std::string fault;

inline void stop(const char* what) {
	if (fault.empty()) {
		char at[400];
		snprintf(at, sizeof at, "%s, block (%u,%u,%u), thread (%u,%u,%u)", what, blockNow.x, blockNow.y, blockNow.z,
		         self->index.x, self->index.y, self->index.z);
		fault = at;
	}
	self->state = done;
	self->begun = false; // it is suspended inside a kernel
	longjmp(scheduler, 1);
}

inline void wait(State s) {
	self->state = s;
	if (!setjmp(self->here)) longjmp(scheduler, 1);
}

// enter is the main function of a fiber: it runs one thread after the other, of successive blocks and
// launches.
inline void enter() {
	for (;;) {
		body(arguments);
		wait(done);
	}
}

inline void run(Fiber& f) {
	self = &f, races::thread = &f - fibers.data();
	if (setjmp(scheduler)) return;
	if (f.begun) longjmp(f.here, 1);
	f.begun = true;
	getcontext(&f.start);
	if (!f.stack) f.stack.reset(new char[stackBytes]);
	f.start.uc_stack.ss_sp = f.stack.get();
	f.start.uc_stack.ss_size = stackBytes;
	f.start.uc_link = nullptr;
	makecontext(&f.start, enter, 0);
	setcontext(&f.start);
}

// gather resumes a warp when all its threads have arrived at a warp operation, or all at __syncwarp.
inline bool gather(size_t w) {
	size_t end = min(w + 32, fibers.size()), here = 0;
	State s = fibers[w].state;
	for (size_t i = w; i < end; i++) here += fibers[i].state == s;
	if (here < 32 || (s != atWarp && s != atWarpBarrier)) return false;
	if (s == atWarpBarrier) races::warpBarrier(w / 32);
	for (size_t i = w; i < end; i++) fibers[i].state = ready;
	return true;
}

// release resumes a block when all its threads have arrived or ended, and reports those that wait for
// threads that will not arrive.
inline bool release() {
	size_t blocked = 0, gone = 0;
	for (Fiber& f : fibers) blocked += f.state == atBlock, gone += f.state == done;
	if (gone == fibers.size()) return false;
	if (blocked + gone == fibers.size()) {
		for (Fiber& f : fibers)
			if (f.state == atBlock) f.state = ready;
		races::barrier();
		return true;
	}
	for (Fiber& f : fibers)
		if (f.state == atWarp || f.state == atWarpBarrier) {
			self = &f;
			if (!setjmp(scheduler)) stop("a warp operation that not all threads of the warp reach");
			break;
		}
	return false;
}

// each runs a block. order is 0 for threads from the first on, 1 for the last, otherwise the seed of a
// shuffle.
inline void each(uint32_t order) {
	epoch++, orderNow = order;
	races::beginBlock();
	std::vector<uint32_t> turn(fibers.size()), warps((fibers.size() + 31) / 32);
	for (size_t i = 0; i < turn.size(); i++) turn[i] = order == 1 ? turn.size() - 1 - i : i;
	for (size_t i = 0; i < warps.size(); i++) warps[i] = order == 1 ? warps.size() - 1 - i : i;
	uint64_t seed = order * 0x9E3779B97F4A7C15u + 1;
	auto shuffle = [&](std::vector<uint32_t>& v, size_t from, size_t end) {
		for (size_t i = end - from; order > 1 && i > 1; i--) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			std::swap(v[from + i - 1], v[from + (seed >> 33) % i]);
		}
	};
	shuffle(warps, 0, warps.size());
	for (size_t w = 0; w < turn.size(); w += 32) shuffle(turn, w, min(w + 32, turn.size()));
	for (Fiber& f : fibers) f.state = ready;
	do
		for (uint32_t w : warps) { // each runs as far ahead of the others as possible
			size_t from = order == 1 ? turn.size() - min<size_t>(32 * w + 32, turn.size()) : 32 * w;
			do
				for (size_t i = from; i < min(from + 32, turn.size()); i++)
					if (fibers[turn[i]].state == ready) run(fibers[turn[i]]);
			while (fault.empty() && gather(32 * w));
		}
	while (fault.empty() && release());
}

inline std::string launch(void (*kernel)(void**), void** args, dim3 g, dim3 b, uint32_t order) {
	grid = g, block = b, body = kernel, arguments = args;
	for (Fiber& f : fibers) f.begun &= fault.empty(); // after a fault, others are suspended inside the kernel
	fault.clear();
	if (fibers.size() != b.x * b.y * b.z) fibers = std::vector<Fiber>(b.x * b.y * b.z); // new fibers, with new stacks
	for (unsigned i = 0; i < fibers.size(); i++) fibers[i].index = {i % b.x, i / b.x % b.y, i / b.x / b.y};
	unsigned blocks = g.x * g.y * g.z;
	for (unsigned n = 0; n < blocks && fault.empty(); n++) {
		unsigned i = order == 0 ? n : blocks - 1 - n;
		blockNow = {i % g.x, i / g.x % g.y, i / g.x / g.y};
		each(order);
	}
	return fault;
}

// An early launch. On a GPU, a kernel may begin before the previous one has ended, and waits for it in awaitPrevious.
// beginEarly runs the threads of a kernel's first block up to there, with addresses at which there is no memory. So
// whatever reads before it waits, and a thread that does not wait, is an error.
inline bool early;
inline size_t waiting; // threads that are in awaitPrevious
inline sigjmp_buf outside;

inline void accessed(int) { siglongjmp(outside, 1); }

inline void awaitPrevious() {
	if (!early) return;
	waiting++;
	self->state = done;
	self->begun = false; // it is suspended inside a kernel
	longjmp(scheduler, 1);
}

// beginEarly returns what is wrong, or "". isPointer has a value for each argument.
inline std::string beginEarly(void (*kernel)(void**), void** args, const std::vector<bool>& isPointer, dim3 b) {
	const uint64_t nowhere = 1ull << 52; // not a valid bit of an address
	std::vector<uint64_t> moved(isPointer.size());
	std::vector<void*> all(args, args + isPointer.size());
	for (size_t i = 0; i < all.size(); i++) {
		if (!isPointer[i]) continue;
		memcpy(&moved[i], args[i], 8);
		if (moved[i]) moved[i] |= nowhere; // absent operands stay so
		all[i] = &moved[i];
	}
	struct sigaction action = {}, before[2];
	action.sa_handler = accessed;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGSEGV, &action, &before[0]);
	sigaction(SIGBUS, &action, &before[1]);
	std::string why;
	early = true, waiting = 0;
	if (sigsetjmp(outside, 1)) {
		why = "accesses memory before it waits for the previous kernel";
		for (Fiber& f : fibers) f.begun = false; // they are suspended inside the kernel
	} else {
		why = launch(kernel, all.data(), {1, 1, 1}, b, 0);
		if (why.empty() && waiting != fibers.size()) why = "does not wait for the previous kernel: it must begin with awaitPrevious()";
	}
	early = false;
	sigaction(SIGSEGV, &before[0], nullptr);
	sigaction(SIGBUS, &before[1], nullptr);
	return why;
}

// share is what the first thread of a block that reaches an array does.
inline void share(long* seen, const char* name, void* p, size_t n, size_t element) {
	if (*seen == epoch) return;
	*seen = epoch;
	memset(p, 0xff, n);
	races::share(name, p, n, element);
}

template <class T> T exchange(uint32_t mask, T v, unsigned from) {
	static_assert(sizeof(T) <= 8, "shuffles move at most 8 bytes");
	unsigned me = self - fibers.data();
	if (mask != 0xffffffffu) stop("a shuffle of a part of a warp");
	if (from > 31) stop("a shuffle from beyond the warp");
	memcpy(&lane[me], &v, sizeof v);
	wait(atWarp);
	memcpy(&v, &lane[me / 32 * 32 + from], sizeof v);
	wait(atWarp);
	return v;
}

inline unsigned laneNow() { return (self - fibers.data()) % 32; }

// What a warp computes together on tensor cores: each lane publishes its operands, and takes what it needs
// from the others.
struct Fragments { uint32_t a[4], b[2]; const char* row; };
inline Fragments fragments[1024];

// loadMatrices is ldmatrix of four 8x8 matrices of 16 bits.
inline void loadMatrices(uint32_t* r, const void* row, bool transposed) {
	unsigned me = self - fibers.data(), lane = me % 32;
	if ((uintptr_t)row % 16 != 0) stop("ldmatrix of a row that is not aligned");
	fragments[me].row = (const char*)row;
	wait(atWarp);
	for (unsigned m = 0; m < 4; m++)
		for (unsigned e = 0; e < 2; e++) {
			unsigned i = lane / 4, j = lane % 4 * 2 + e;
			if (transposed) std::swap(i, j);
			memcpy((char*)&r[m] + 2 * e, fragments[me - lane + 8 * m + i].row + 2 * j, 2);
		}
	wait(atWarp);
}

// multiply is mma.sync m16n8k16 of 16-bit numbers, accumulated in float.
inline void multiply(float* c, const uint32_t* a, uint32_t b0, uint32_t b1, float (*widen)(unsigned short)) {
	unsigned me = self - fibers.data(), lane = me % 32;
	memcpy(fragments[me].a, a, sizeof fragments[me].a);
	fragments[me].b[0] = b0, fragments[me].b[1] = b1;
	wait(atWarp);
	const Fragments* of = &fragments[me - lane];
	auto half = [&](uint32_t x, unsigned k) { return widen((unsigned short)(x >> k % 2 * 16)); };
	for (unsigned i = 0; i < 4; i++) {
		unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
		double sum = 0;
		for (unsigned k = 0; k < 16; k++)
			sum += (double)half(of[row % 8 * 4 + k % 8 / 2].a[row / 8 + k / 8 * 2], k) * half(of[column * 4 + k % 8 / 2].b[k / 8], k);
		c[i] += (float)sum;
	}
	wait(atWarp);
}

// Asynchronous copies to shared memory run when they are waited for in a launch's first order, at once in
// the second, and either way in the third.
struct Copy {
	char* to;
	const char* from;
	int bytes;
	long group;
	bool made = false;
	void make() {
		uint4 all = {0, 0, 0, 0};
		memcpy(&all, from, bytes);
		*(uint4*)to = all; // one access, of which the detection of races knows
		made = true;
	}
};
struct Copies { std::vector<Copy> all; long group = 0, block = -1; };
inline Copies copies[1024];
inline Copies& copiesNow() {
	Copies& c = copies[self - fibers.data()];
	if (c.block != epoch) c.all.clear(), c.group = 0, c.block = epoch;
	return c;
}
inline void copy16(void* to, const void* from, int bytes) {
	if (((uintptr_t)to | (uintptr_t)from) % 16 != 0) stop("an asynchronous copy that is not aligned");
	Copies& c = copiesNow();
	c.all.push_back({(char*)to, (const char*)from, bytes, c.group});
	if (orderNow == 1 || (orderNow > 1 && c.all.size() % 2 == 1)) c.all.back().make();
}
inline void copyGroup() { copiesNow().group++; }
inline void copyWait(int but) {
	Copies& c = copiesNow();
	size_t n = 0;
	for (; n < c.all.size() && c.all[n].group < c.group - but; n++)
		if (!c.all[n].made) c.all[n].make();
	c.all.erase(c.all.begin(), c.all.begin() + n);
}

} // namespace emulate

#define threadIdx (emulate::self->index)
#define blockIdx (emulate::blockNow)
#define blockDim (emulate::block)
#define gridDim (emulate::grid)
#define SHARED(T, name, n)           \
	static T name[n];            \
	static long name##_seen;     \
	emulate::share(&name##_seen, #name, name, sizeof name, sizeof name[0])

using emulate::awaitPrevious;
inline void __syncthreads() { emulate::wait(emulate::atBlock); }
inline void __syncwarp() { emulate::wait(emulate::atWarpBarrier); }
template <class T> T __shfl_xor_sync(uint32_t mask, T v, int d) { return emulate::exchange(mask, v, emulate::laneNow() ^ d); }
template <class T> T __shfl_sync(uint32_t mask, T v, int from) { return emulate::exchange(mask, v, from); }
template <class T> T __shfl_up_sync(uint32_t mask, T v, int d) {
	return emulate::exchange(mask, v, (int)emulate::laneNow() < d ? emulate::laneNow() : emulate::laneNow() - d);
}
inline uint32_t __ballot_sync(uint32_t mask, bool b) {
	unsigned me = emulate::self - emulate::fibers.data();
	uint32_t all = 0;
	emulate::exchange(mask, (int)b, 0);
	emulate::lane[me] = b;
	emulate::wait(emulate::atWarp);
	for (unsigned i = 0; i < 32; i++) all |= (uint32_t)emulate::lane[me / 32 * 32 + i] << i;
	emulate::wait(emulate::atWarp);
	return all;
}
inline int __popc(uint32_t x) { return __builtin_popcount(x); }
inline float __uint_as_float(uint32_t b) { float x; memcpy(&x, &b, 4); return x; }
inline uint32_t __float_as_uint(float x) { uint32_t b; memcpy(&b, &x, 4); return b; }

// The conversions that PTX has instructions for, equal to those of runtime/num.
inline unsigned short narrowBF16(float x) {
	uint32_t b = __float_as_uint(x);
	return x != x ? b >> 16 | 0x40 : (b + 0x7fff + (b >> 16 & 1)) >> 16;
}
inline float widenF16(unsigned short x) {
	uint32_t sign = (uint32_t)(x & 0x8000) << 16, rest = (uint32_t)(x & 0x7fff) << 13;
	if (rest >= 31u << 23) return __uint_as_float(sign | rest | 0x7f800000);
	return __uint_as_float(sign | __float_as_uint(__uint_as_float(rest) * 0x1p112f));
}
inline unsigned short narrowF16(float x) {
	uint32_t b = __float_as_uint(x), sign = b >> 16 & 0x8000;
	b &= 0x7fffffff;
	if (b > 0x7f800000) return sign | 0x7e00;
	if (b >= (127 + 16) << 23) return sign | 0x7c00;
	if (b < (127 - 14) << 23) return sign | (__float_as_uint(__uint_as_float(b) + 0.5f) - __float_as_uint(0.5f));
	b -= 112 << 23;
	return sign | (b + 0xfff + (b >> 13 & 1)) >> 13;
}
inline uint32_t pairOfBF16(float low, float high) { return narrowBF16(low) | (uint32_t)narrowBF16(high) << 16; }
inline uint32_t pairOfF16(float low, float high) { return narrowF16(low) | (uint32_t)narrowF16(high) << 16; }
inline float exp2Fast(float x) { return exp2f(x); }
inline float inverseFast(float x) { return 1 / x; }
