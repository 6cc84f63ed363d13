// Memory that NCCL is told of beforehand. What NVIDIA asks of it is checked: in a collective all ranks' operands are registered or none's, and
// then as far behind the beginning of what was registered on all; and it is deregistered before the communicator or the memory ends.
#include <stdlib.h>
#include "nccl_world.h"

#define PROTOTYPE(needed, result, name, params, args) extern "C" result name params;
PLANC_NCCL(PROTOTYPE)
extern "C" CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n);
extern "C" CUresult cuMemFree_v2(CUdeviceptr p);

struct Registered {
	const ncclComm *comm;
	uint64_t at;
	size_t bytes;
};
static std::vector<Registered *> all;

// refuses tells whether the bound device does: PLANC_EMULATED_UNREGISTERED=2.
static bool refuses() {
	const char *n = getenv("PLANC_EMULATED_UNREGISTERED");
	return n && *n && current && current->device == atoi(n);
}

ncclResult_t ncclMemAlloc(void **p, size_t n) {
	CUdeviceptr at = 0;
	if (cuMemAlloc_v2(&at, n)) return 1;
	*p = (void *)at;
	return 0;
}
ncclResult_t ncclMemFree(void *p) {
	{
		Held held;
		for (const Registered *r : all)
			if (r->at == (uint64_t)p && r->comm->live) die("memory is freed that rank %d of a communicator of %d has registered", r->comm->rank, r->comm->world->ranks);
	}
	return cuMemFree_v2((CUdeviceptr)p) ? 1 : 0;
}
ncclResult_t ncclCommRegister(const ncclComm_t h, void *p, size_t n, void **handle) {
	Held held;
	ncclComm *c = is<ncclComm>(h, COMM);
	if (!c || !touches(c->context, (uint64_t)p, n, "").empty()) return 4;
	if (refuses()) return 1;
	all.push_back(new Registered{c, (uint64_t)p, n});
	*handle = all.back();
	say("registered: %zu bytes of device %d as rank %d of %d", n, c->context->device, c->rank, c->world->ranks);
	return 0;
}
ncclResult_t ncclCommDeregister(const ncclComm_t h, void *handle) {
	Held held;
	auto r = std::find(all.begin(), all.end(), (Registered *)handle);
	if (!is<ncclComm>(h, COMM) || r == all.end() || (*r)->comm != h) return 4;
	all.erase(r);
	return 0;
}

int registeredOf(const ncclComm *c) {
	return std::count_if(all.begin(), all.end(), [=](const Registered *r) { return r->comm == c; });
}

// within is how far behind the beginning of registered memory an operand lies, -1 where it is in none.
static long within(const ncclComm *c, const void *p) {
	for (const Registered *r : all)
		if (r->comm == c && (uint64_t)p - r->at < r->bytes) return (uint64_t)p - r->at;
	return -1;
}

void registeredAlike(const std::vector<const Part *> &parts) {
	const Part &a = *parts[0];
	for (const Part *b : parts) {
		bool from = a.kind == 'r' || a.kind == 's', to = a.kind == 'r' || a.kind == 'g'; // of others one rank's part alone is an operand
		if ((from && within(a.comm, a.from) != within(b->comm, b->from)) || (to && within(a.comm, a.to) != within(b->comm, b->to)))
			die("%s and %s differ in what is registered, or where it lies", text(a).c_str(), text(*b).c_str());
	}
}
