package emulate

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// Kernels, most of them with a fault, over a block of 64 threads unless the test says otherwise.
const source = `
extern "C" void fine(float* y, const float* x, int n, double scale) {
	awaitPrevious();
	SHARED(float, all, 64);
	all[threadIdx.x] = x[threadIdx.x];
	__syncthreads();
	float v = all[63 - threadIdx.x];
	for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
	const int odd = __popc(__ballot_sync(0xffffffffu, threadIdx.x % 2));
	if (threadIdx.x < n) y[threadIdx.x] = v * scale + odd;
}
extern "C" void unfenced(float* y, const float* x) {
	awaitPrevious();
	SHARED(float, all, 64);
	all[threadIdx.x] = x[threadIdx.x];
	y[threadIdx.x] = all[63 - threadIdx.x];
}
extern "C" void overwritten(float* y, const float* x) {
	awaitPrevious();
	SHARED(float, all, 64);
	all[threadIdx.x] = x[threadIdx.x];
	__syncthreads();
	y[threadIdx.x] = all[0] + all[63 - threadIdx.x];
	if (threadIdx.x < 32) __syncwarp(); else __syncwarp();
	if (threadIdx.x == 0) all[0] = 1;
	__syncthreads();
	y[threadIdx.x] += all[0];
}
extern "C" void shuffled(float* y, int fenced) {
	awaitPrevious();
	SHARED(float, all, 32);
	all[threadIdx.x] = threadIdx.x;
	float v = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
	if (fenced) __syncwarp();
	y[threadIdx.x] = v + all[31 - threadIdx.x];
}
extern "C" void halves(float* y) {
	awaitPrevious();
	SHARED(unsigned, all, 16);
	((unsigned short*)all)[threadIdx.x] = threadIdx.x;
	__syncwarp();
	y[threadIdx.x] = all[threadIdx.x / 2];
}
extern "C" void stale(float* y) {
	awaitPrevious();
	SHARED(float, all, 64);
	if (blockIdx.x == 0) all[threadIdx.x] = 1;
	y[blockIdx.x * 64 + threadIdx.x] = all[threadIdx.x];
}
extern "C" void between(float* y) {
	awaitPrevious();
	y[blockIdx.x + 1] = y[blockIdx.x] + 2;
}
extern "C" void beyond(float* y, int n) { awaitPrevious(); y[n + (int)threadIdx.x] = 0; }
extern "C" void split() { awaitPrevious(); if (threadIdx.x < 32) __syncwarp(); else if (threadIdx.x < 40) __syncwarp(); }
extern "C" void partly(float* y) {
	awaitPrevious();
	float v = threadIdx.x;
	if (threadIdx.x % 2) v = __shfl_xor_sync(0xffffffffu, v, 1);
	y[threadIdx.x] = v;
}
struct alignas(16) Four { float at[4]; };
extern "C" void packs(float* y) { awaitPrevious(); *(Four*)y = Four{}; }
extern "C" void outside(float* y, int n) {
	awaitPrevious();
	SHARED(float, all, 64);
	all[n] = 1;
	y[0] = all[0];
}
extern "C" void endless(float* y) { awaitPrevious(); while (((volatile float*)y)[0] == 0) {} }
extern "C" void table(float* const* rows, int n) { awaitPrevious(); for (int i = 0; i < n; i++) rows[i][threadIdx.x] = i; }
extern "C" void hasty(float* y) { y[threadIdx.x] = 1; awaitPrevious(); }
extern "C" void impatient(float* y, int n) {
	if (threadIdx.x < 32) awaitPrevious();
	if (n > 0) y[threadIdx.x] = 1;
}
`

func floats(n int) *Buffer {
	b := &Buffer{}
	for i := range n {
		b.Bytes = binary.LittleEndian.AppendUint32(b.Bytes, math.Float32bits(float32(i)))
	}
	return b
}

func at(b *Buffer, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b.Bytes[4*i:]))
}

func machine(t *testing.T) *Machine {
	t.Helper()
	if why := Skipped(); why != "" {
		t.Skip(why)
	}
	names := []string{"fine", "unfenced", "overwritten", "shuffled", "halves", "stale", "between", "beyond", "split",
		"partly", "packs", "outside", "endless", "table", "hasty", "impatient"}
	m, err := Build(t.TempDir(), "source.cu", map[string][]byte{"source.cu": []byte(source)}, names)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func block(threads int) Launch { return Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{threads, 1, 1}} }

func TestLaunch(t *testing.T) {
	m, y := machine(t), floats(64)
	if err := m.Launch("fine", block(64), y, floats(64), 40, 0.5); err != nil {
		t.Fatal(err)
	}
	// The first warp sums what the second wrote, 32 to 63, and counts 16 odd threads.
	if at(y, 3) != (32+63)*16*0.5+16 || at(y, 39) != (0+31)*16*0.5+16 || at(y, 40) != 40 {
		t.Errorf("y is %v, %v, %v", at(y, 3), at(y, 39), at(y, 40))
	}
	if err := m.Launch("shuffled", block(32), y, 1); err != nil || at(y, 3) != 29 {
		t.Errorf("%v: y is %v", err, at(y, 3))
	}
	if err := m.Launch("halves", block(32), y); err != nil || at(y, 3) != 2|3<<16 {
		t.Errorf("%v: y is %v", err, at(y, 3))
	}
	rows := Table{floats(32), floats(32)}
	if err := m.Launch("table", block(32), rows, 2); err != nil || at(rows[0], 7) != 0 || at(rows[1], 7) != 1 {
		t.Errorf("%v: rows are %v and %v", err, at(rows[0], 7), at(rows[1], 7))
	}
}

// Faults that a GPU may hide are refused, each with its own message.
func TestFaults(t *testing.T) {
	m := machine(t)
	skewed := floats(8)
	skewed.Skew = 4
	for _, c := range []struct {
		kernel string
		launch Launch
		args   []any
		want   string
	}{
		{"unfenced", block(64), []any{floats(64), floats(64)}, "unfenced: a race in shared memory: no barrier is " +
			"between thread (31,0,0), which read all[32], and the one that writes it, block (0,0,0), thread (32,0,0)"},
		{"overwritten", block(64), []any{floats(64), floats(64)}, "overwritten: a race in shared memory: no barrier " +
			"is between thread (0,0,0), which wrote all[0], and the one that reads it, block (0,0,0), thread (32,0,0)"},
		{"shuffled", block(32), []any{floats(32), 0}, "a race in shared memory: no barrier is between thread " +
			"(31,0,0), which wrote all[31], and the one that reads it, block (0,0,0), thread (0,0,0)"},
		{"between", Launch{Grid: [3]int{4, 1, 1}, Block: [3]int{32, 1, 1}}, []any{floats(5)},
			"depends on the order of the threads"},
		{"beyond", block(64), []any{floats(64), 1}, "buffer 0 was written beyond its ends"},
		{"beyond", block(64), []any{floats(64), -1}, "buffer 0 was written beyond its ends"},
		{"split", block(64), nil, "a warp operation that not all threads of the warp reach, block (0,0,0), " +
			"thread (32,0,0)"},
		{"partly", block(64), []any{floats(64)}, "a warp operation that not all threads of the warp reach"},
		{"fine", block(64), []any{floats(64), floats(64), 64}, "the kernel has 4 parameters, the call 3"},
		{"fine", block(64), []any{floats(64), floats(64), int64(64), 1.0}, "parameter 2 has 4 bytes, the call's 8"},
		{"none", block(64), nil, "no kernel none"},
		{"hasty", block(64), []any{floats(64)}, "accesses memory before it waits for the previous kernel"},
		{"impatient", block(64), []any{floats(64), 0}, "does not wait for the previous kernel: it must begin with " +
			"awaitPrevious()"},
	} {
		if err := m.Launch(c.kernel, c.launch, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.kernel, err, c.want)
		}
	}
	stale := floats(128)
	if err := m.Launch("stale", Launch{Grid: [3]int{2, 1, 1}, Block: [3]int{64, 1, 1}}, stale); err != nil ||
		at(stale, 0) != 1 || at(stale, 64) == 1 {
		t.Errorf("%v: the second block found %v in shared memory", err, at(stale, 64))
	}
	if err := m.Launch("packs", block(32), skewed); !errors.Is(err, ErrCrashed) {
		t.Errorf("a pack that is not aligned: %v", err)
	}
	if err := machine(t).Launch("outside", block(32), floats(1), 64); !errors.Is(err, ErrCrashed) {
		t.Errorf("an index beyond an array: %v", err)
	}
	endless := machine(t)
	timeLimit = time.Second
	defer func() { timeLimit = time.Minute }()
	if err := endless.Launch("endless", block(1), floats(1)); !errors.Is(err, ErrEndless) ||
		!Unjudged([]byte(err.Error())) {
		t.Errorf("a kernel that does not end: %v", err)
	}
}
