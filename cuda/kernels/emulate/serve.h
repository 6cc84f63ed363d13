// The other end of machine.go: it reads launches from standard input and answers on standard output, until
// the input ends. Numbers are little-endian, as on the supported machines.
#pragma once
#include "emulate.h"

namespace emulate {

template <auto F> struct Thunk;
template <class... A, void (*F)(A...)> struct Thunk<F> {
	template <size_t... I> static void apply(void** p, std::index_sequence<I...>) { F(*(std::decay_t<A>*)p[I]...); }
	static void run(void** p) { apply(p, std::index_sequence_for<A...>()); }
	static std::vector<uint32_t> sizes() { return {(uint32_t)sizeof(A)...}; }
};

struct Entry {
	const char* name;
	void (*run)(void**);
	std::vector<uint32_t> sizes;
};

template <class T> T get() {
	T v;
	if (fread(&v, sizeof v, 1, stdin) != 1) exit(0);
	return v;
}

inline std::vector<char> bytes(size_t n) {
	std::vector<char> b(n);
	if (n != 0 && fread(b.data(), n, 1, stdin) != 1) exit(1);
	return b;
}

// A buffer lies between guards, which are NaN in every type. It starts skew bytes after a multiple of 16.
struct Buffer {
	static constexpr size_t guard = 64;
	std::vector<char> given, memory;
	size_t skew;
	char* data() { return (char*)(((uintptr_t)memory.data() + 15) / 16 * 16 + guard + skew); }
	void fill() {
		memory.assign(given.size() + 2 * guard + skew + 16, (char)0xff);
		memcpy(data(), given.data(), given.size());
	}
	bool whole() {
		for (char* p = memory.data(); p < memory.data() + memory.size(); p++)
			if ((p < data() || p >= data() + given.size()) && *p != (char)0xff) return false;
		return true;
	}
};

struct Argument {
	char kind; // v is a value, b a buffer, t a table of buffers' addresses
	std::vector<char> value;
	std::vector<uint32_t> buffers;
};

struct Request {
	std::string name;
	dim3 grid, block;
	std::vector<Buffer> buffers;
	std::vector<Argument> args;
};

inline Request request() {
	Request r;
	std::vector<char> name = bytes(get<uint32_t>());
	r.name.assign(name.begin(), name.end());
	uint32_t g[6];
	for (uint32_t& x : g) x = get<uint32_t>();
	r.grid = {g[0], g[1], g[2]}, r.block = {g[3], g[4], g[5]};
	for (uint32_t n = get<uint32_t>(); n > 0; n--) {
		Buffer b;
		b.skew = get<uint32_t>();
		b.given = bytes(get<uint64_t>());
		r.buffers.push_back(std::move(b));
	}
	for (uint32_t n = get<uint32_t>(); n > 0; n--) {
		Argument a;
		a.kind = get<char>();
		uint32_t size = get<uint32_t>();
		if (a.kind == 'v') a.value = bytes(size);
		else
			for (; size > 0; size--) a.buffers.push_back(get<uint32_t>());
		r.args.push_back(std::move(a));
	}
	return r;
}

inline std::string prepare(Request& r, const Entry& e, std::vector<std::vector<char>>& words) {
	if (e.sizes.size() != r.args.size()) return "the kernel has " + std::to_string(e.sizes.size()) + " parameters, the call " + std::to_string(r.args.size());
	words.clear();
	for (Buffer& b : r.buffers) b.fill();
	for (size_t i = 0; i < r.args.size(); i++) {
		Argument& a = r.args[i];
		std::vector<char> word = a.value;
		if (a.kind != 'v') {
			std::vector<char> table;
			for (uint32_t n : a.buffers) {
				char* p = r.buffers[n].data();
				table.insert(table.end(), (char*)&p, (char*)&p + sizeof p);
			}
			if (a.kind == 't') {
				a.value = table;
				char* p = a.value.data();
				table.assign((char*)&p, (char*)&p + sizeof p);
			}
			word = table;
		}
		if (word.size() != e.sizes[i]) return "parameter " + std::to_string(i) + " has " + std::to_string(e.sizes[i]) + " bytes, the call's " + std::to_string(word.size());
		words.push_back(word);
	}
	return "";
}

inline const char* kernelNow;

// serve runs a launch with three orders of its threads, which must give the same result.
inline std::string serve(Request& r, const Entry& e, std::vector<std::string>& out) {
	std::vector<std::vector<char>> words;
	kernelNow = e.name;
	for (uint32_t order = 0; order < 3; order++) {
		std::string why = prepare(r, e, words);
		if (!why.empty()) return why;
		std::vector<void*> args;
		for (auto& w : words) args.push_back(w.data());
		if (order == 0) {
			std::vector<bool> isPointer;
			for (Argument& a : r.args) isPointer.push_back(a.kind != 'v');
			why = beginEarly(e.run, args.data(), isPointer, r.block);
			if (!why.empty()) return why;
		}
		why = launch(e.run, args.data(), r.grid, r.block, order);
		if (!why.empty()) return why;
		for (size_t i = 0; i < r.buffers.size(); i++) {
			Buffer& b = r.buffers[i];
			if (!b.whole()) return "buffer " + std::to_string(i) + " was written beyond its ends";
			std::string now(b.data(), b.given.size());
			if (order == 0) out.push_back(now);
			else if (out[i] != now) return "buffer " + std::to_string(i) + " depends on the order of the threads: a race";
		}
	}
	return "";
}

inline void put(const void* p, size_t n) { fwrite(p, n, 1, stdout); }

inline int serveAll(const std::vector<Entry>& entries) {
	for (;;) {
		Request r = request();
		std::string why = "no kernel " + r.name;
		std::vector<std::string> out;
		for (const Entry& e : entries)
			if (r.name == e.name) why = serve(r, e, out);
		uint32_t n = why.size();
		put(&n, sizeof n);
		put(why.data(), n);
		if (why.empty())
			for (auto& b : out) put(b.data(), b.size());
		fflush(stdout);
	}
}

} // namespace emulate

__attribute__((used)) inline void races::found(const char* name, size_t element, bool writes, bool otherWrites, int other) {
	dim3 i = emulate::fibers[other].index;
	char what[240];
	snprintf(what, sizeof what, "%s: a race in shared memory: no barrier is between thread (%u,%u,%u), which %s %s[%zu], and the one that %s it", emulate::kernelNow,
	         i.x, i.y, i.z, otherWrites ? "wrote" : "read", name, element, writes ? "writes" : "reads");
	emulate::stop(what);
}

#define ENTRY(k) {#k, emulate::Thunk<k>::run, emulate::Thunk<k>::sizes()}
