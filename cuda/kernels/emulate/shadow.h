// Detects races in shared memory: two threads access a byte, at least one writes it, and no barrier orders them. The
// compiler's -fsanitize=thread calls the functions at the end of this file for each access to memory. Its library is
// not linked, and this file is compiled without that flag.
//
// Only __syncthreads orders threads of different warps, and only __syncthreads and __syncwarp order those of one warp.
// Shuffles and other warp operations do not, as on a GPU.
#include "races.h"
#include <cstdlib>

namespace {

// Cell records accesses to a byte. Times are numbers of barriers.
struct Cell {
	uint32_t wrote, wroteInWarp; // time of the last write
	uint32_t read, readInWarp;   // time of the last read
	uint16_t writer, reader;
	uint16_t other; // another reader, if there are several
	uint16_t readers;
};
enum { oneThread, oneWarp, severalWarps }; // values of readers

struct Region {
	const char* name;
	char* from;
	size_t bytes, element;
	Cell* cells;
};

const int most = 1024; // arrays of all kernels of a program
Region regions[most];
Region* active[most]; // the arrays of the current block
int known, count;
char *low, *high; // bounds of the active regions
uint32_t now = 1, nowInWarp[32];

// unordered reports whether no barrier is between the current thread's access and one of another thread.
bool unordered(int thread, uint32_t inWarp) {
	int me = races::thread;
	return thread != me && (thread / 32 != me / 32 || inWarp == nowInWarp[me / 32]);
}

// reader returns a reader that no barrier separates from a write by the current thread, or -1.
int readerOf(const Cell& c) {
	int me = races::thread;
	if (c.read != now) return -1;
	if (c.readers == severalWarps) return c.reader / 32 != me / 32 ? c.reader : c.other;
	if (unordered(c.reader, c.readInWarp)) return c.reader;
	return c.readers == oneWarp && unordered(c.other, c.readInWarp) ? c.other : -1;
}

void noteRead(Cell& c) {
	uint16_t me = races::thread;
	uint32_t inWarp = nowInWarp[me / 32];
	if (c.read == now && c.reader == me && c.readInWarp == inWarp) return;
	bool sameWarp = c.reader / 32 == me / 32;
	if (c.read != now) c.readers = oneThread;
	else if (!sameWarp) c.other = c.reader, c.readers = severalWarps;
	else if (c.readers != severalWarps) {
		c.other = c.reader;
		c.readers = c.readInWarp == inWarp ? oneWarp : oneThread;
	}
	c.read = now, c.readInWarp = inWarp, c.reader = me;
}

void touch(char* p, size_t n, bool writes) {
	if (p < low || p >= high) return;
	for (int i = 0; i < count; i++) {
		Region& r = *active[i];
		size_t at = p - r.from;
		if (at >= r.bytes) continue;
		for (size_t k = at; k < at + n && k < r.bytes; k++) {
			Cell& c = r.cells[k];
			if (c.wrote == now && unordered(c.writer, c.wroteInWarp)) races::found(r.name, k / r.element, writes, true, c.writer);
			if (!writes) {
				noteRead(c);
				continue;
			}
			int reader = readerOf(c);
			if (reader >= 0) races::found(r.name, k / r.element, true, false, reader);
			c.wrote = now, c.wroteInWarp = nowInWarp[races::thread / 32], c.writer = races::thread, c.read = 0;
		}
		return;
	}
}

} // namespace

int races::thread;

void races::beginBlock() {
	now++, count = 0;
	low = high = nullptr;
}

void races::share(const char* name, void* p, size_t bytes, size_t element) {
	int i = 0;
	while (i < known && regions[i].from != p) i++;
	if (i == most) abort();
	if (i == known) {
		Cell* cells = (Cell*)calloc(bytes, sizeof(Cell));
		if (!cells) abort();
		regions[known++] = {name, (char*)p, bytes, element, cells};
	}
	active[count++] = &regions[i];
	if (!low || (char*)p < low) low = (char*)p;
	if ((char*)p + bytes > high) high = (char*)p + bytes;
}

void races::barrier() { now++; }
void races::warpBarrier(int warp) { nowInWarp[warp]++; }

#define ACCESS(n)                                                                    \
	void __tsan_read##n(void* p) { touch((char*)p, n, false); }                  \
	void __tsan_write##n(void* p) { touch((char*)p, n, true); }                  \
	void __tsan_unaligned_read##n(void* p) { touch((char*)p, n, false); }        \
	void __tsan_unaligned_write##n(void* p) { touch((char*)p, n, true); }
extern "C" {
ACCESS(1) ACCESS(2) ACCESS(4) ACCESS(8) ACCESS(16)
void __tsan_read_range(void* p, size_t n) { touch((char*)p, n, false); }
void __tsan_write_range(void* p, size_t n) { touch((char*)p, n, true); }
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void) {}
void __tsan_init(void) {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
