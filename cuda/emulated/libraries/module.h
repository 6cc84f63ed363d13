// What a module of emulated kernels exports to the driver (gpu.h).
#pragma once
#include "emulate.h"

namespace emulate {

template <auto F> struct Kernel;
template <class... A, void (*F)(A...)> struct Kernel<F> {
	template <size_t... I> static void apply(void** p, std::index_sequence<I...>) { F(*(std::decay_t<A>*)p[I]...); }
	static void run(void** p) { apply(p, std::index_sequence_for<A...>()); }
	static constexpr uint32_t sizes[] = {sizeof(A)..., 0};
	static constexpr bool pointer[] = {std::is_pointer_v<A>..., false};
};

struct Export {
	const char* name;
	void (*run)(void**);
	const uint32_t* sizes;
	const bool* pointer;
};

} // namespace emulate

#define EXPORT(k) {#k, emulate::Kernel<k>::run, emulate::Kernel<k>::sizes, emulate::Kernel<k>::pointer}

// planc_early runs the beginning of a kernel with count parameters, and returns an error message, or "".
extern "C" __attribute__((visibility("default"))) const char* planc_early(void (*run)(void**), void** args, const bool* pointer, uint32_t count, const uint32_t* block) {
	static std::string why;
	why = emulate::beginEarly(run, args, std::vector<bool>(pointer, pointer + count), {block[0], block[1], block[2]});
	return why.c_str();
}

// planc_launch runs a grid and returns an error message, or "".
extern "C" __attribute__((visibility("default"))) const char* planc_launch(void (*run)(void**), void** args, const uint32_t* grid, const uint32_t* block, uint32_t shared, uint32_t order) {
	static std::string why;
	why = emulate::launch(run, args, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, order);
	return why.c_str();
}
