// Memory that is registered with NCCL. NVIDIA's rules are checked: in a collective the operands of all
// ranks are registered or those of none, and if so at the same offset in the registered memory; memory is
// deregistered before the communicator is destroyed or the memory is freed.
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

// refuses reports whether the bound device refuses to register memory: PLANC_EMULATED_UNREGISTERED=2.
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
			if (r->at == (uint64_t)p && r->comm->live) die("memory that rank %d of a communicator of %d has registered is freed", r->comm->rank, r->comm->world->ranks);
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

// within is the offset of an operand in registered memory, or -1 if it is not registered.
static long within(const ncclComm *c, const void *p) {
	for (const Registered *r : all)
		if (r->comm == c && (uint64_t)p - r->at < r->bytes) return (uint64_t)p - r->at;
	return -1;
}

void registeredAlike(const std::vector<const Part *> &parts) {
	const Part &a = *parts[0];
	for (const Part *b : parts) {
		// for other calls only one rank has an operand
		bool from = a.kind == 'r' || a.kind == 's', to = a.kind == 'r' || a.kind == 'g';
		if ((from && within(a.comm, a.from) != within(b->comm, b->from)) || (to && within(a.comm, a.to) != within(b->comm, b->to)))
			die("%s and %s differ in whether or where their operands are registered", text(a).c_str(), text(*b).c_str());
	}
}
