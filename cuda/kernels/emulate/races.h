// The detection of races in shared memory, in shadow.h, as emulate.h and serve.h call it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace races {

extern int thread; // the number of the running thread in its block

void beginBlock();
// share adds an array of the current block.
void share(const char* name, void* p, size_t bytes, size_t element);
void barrier();             // all threads of the block have met
void warpBarrier(int warp); // all threads of a warp have met

// found reports a race of the current thread, which reads or writes an element, with another one.
void found(const char* name, size_t element, bool writes, bool otherWrites, int other);

} // namespace races
