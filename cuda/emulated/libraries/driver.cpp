// Driver calls that enqueue no work: devices, contexts, memory, modules.
#include "gpu.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "call.h"

#define PROTOTYPE(needed, name, params, args) extern "C" CUresult name params;
PLANC_DRIVER(PROTOTYPE)

thread_local Context *current;
thread_local Graph *capturing;

const char *const kinds[KINDS] = {"context", "module", "function", "stream", "event", "graph", "launchable graph", "memory", "pinned memory", "cuBLASLt handle", "communicator", "cuDNN handle"};
static std::map<const void *, Object *> objects;
static int made[KINDS];
static std::map<uint64_t, Allocation *> memory; // by start address

void keep(Object *o, Kind kind) {
	o->kind = kind;
	o->id = ++made[kind];
	o->context = current;
	objects[o] = o;
}

Object *living(const void *handle, Kind kind) {
	auto o = objects.find(handle);
	return o != objects.end() && o->second->live && o->second->kind == kind ? o->second : NULL;
}

std::vector<Context *> &contexts() {
	static std::vector<Context *> all;
	return all;
}

// leaks lists what a context still owns.
void leaks(Context *c) {
	for (auto &o : objects)
		if (o.second->live && o.second->context == c && o.second->kind != FUNCTION && o.second->kind != CONTEXT) {
			auto *a = dynamic_cast<Allocation *>(o.second);
			say("leak: device %d: %s %d%s", c->device, kinds[o.second->kind], o.second->id, a ? (" of " + std::to_string(a->bytes) + " bytes").c_str() : "");
		}
	if (!c->work.empty()) say("leak: device %d: %zu enqueued operations have not run", c->device, c->work.size());
}

bool launchable(const ncclComm *c) {
	for (auto &o : objects)
		if (o.second->live && o.second->kind == EXEC)
			for (const Node &n : static_cast<Exec *>(o.second)->graph->nodes)
				for (const Part &p : n.parts)
					if (p.comm == c) return true;
	return false;
}

Allocation *holds(uint64_t p, size_t bytes) {
	auto a = memory.upper_bound(p);
	if (a == memory.begin()) return NULL;
	Allocation *m = std::prev(a)->second;
	return p + bytes <= m->begin + m->bytes ? m : NULL;
}

std::string touches(Context *c, uint64_t p, size_t bytes, const char *what) {
	char text[200];
	Allocation *m = holds(p, bytes);
	if (m && (m->kind == PINNED || m->context == c || c->reach.count(m->context))) return "";
	if (m) snprintf(text, sizeof text, "%s is memory of device %d, which device %d cannot access", what, m->context->device, c->device);
	else snprintf(text, sizeof text, "%s (%zu bytes at %#llx) is not allocated memory", what, bytes, (unsigned long long)p);
	return text;
}

static int devices() {
	const char *n = getenv("PLANC_EMULATED_GPUS");
	return n && *n ? atoi(n) : 8;
}
// firstBus is the index of the first device that the process sees, as set by CUDA_VISIBLE_DEVICES.
static int firstBus() {
	const char *n = getenv("PLANC_EMULATED_FIRST");
	return n && *n ? atoi(n) : 0;
}
static size_t total() { return (size_t)80 << 30; }

CALL(cuInit, (unsigned flags), 0, { (void)flags; if (devices() < 1) r = NO_DEVICE; })
CALL(cuDriverGetVersion, (int *v), 0, { *v = 13050; })

static const std::map<int, std::pair<const char *, const char *>> errors = {
	{INVALID_VALUE, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}}, {OUT_OF_MEMORY, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}}, {NO_DEVICE, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
	{INVALID_IMAGE, {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}}, {INVALID_CONTEXT, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}}, {INVALID_HANDLE, {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}},
	{NOT_FOUND, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}}, {NOT_READY, {"CUDA_ERROR_NOT_READY", "device not ready"}}, {ILLEGAL_ADDRESS, {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
	{LAUNCH_OUT_OF_RESOURCES, {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"}}, {LAUNCH_FAILED, {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}},
	{CAPTURE_UNSUPPORTED, {"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"}}, {CAPTURE_INVALIDATED, {"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"}},
	{CAPTURE_UNMATCHED, {"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not initiated in this stream"}}, {CAPTURE_UNJOINED, {"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"}},
	{CAPTURE_ISOLATION, {"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"}}, {CAPTURED_EVENT, {"CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"}},
};
CUresult cuGetErrorName(CUresult r, const char **text) {
	auto e = errors.find(r);
	*text = e == errors.end() ? NULL : e->second.first;
	return *text ? 0 : INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult r, const char **text) {
	auto e = errors.find(r);
	*text = e == errors.end() ? NULL : e->second.second;
	return *text ? 0 : INVALID_VALUE;
}

CALL(cuDeviceGetCount, (int *n), 0, { *n = devices(); })
CALL(cuDeviceGet, (CUdevice *d, int i), 0, { if (i < 0 || i >= devices()) r = INVALID_VALUE; else *d = i; })
CALL(cuDeviceGetName, (char *name, int n, CUdevice d), 0, { (void)d; snprintf(name, n, "Emulated GPU"); })
CALL(cuDeviceGetPCIBusId, (char *id, int n, CUdevice d), 0, { snprintf(id, n, "0000:%02x:00.0", firstBus() + d + 1); })
CALL(cuDeviceTotalMem_v2, (size_t *n, CUdevice d), 0, { (void)d; *n = total(); })
CALL(cuDeviceCanAccessPeer, (int *can, CUdevice d, CUdevice p), 0, { *can = d != p; })
CALL(cuDeviceGetAttribute, (int *v, CUdevice_attribute a, CUdevice d), 0, {
	(void)d;
	if (a == planc_attr_major) *v = 9;
	else if (a == planc_attr_minor) *v = 0;
	else if (a == planc_attr_multiprocessors) *v = 132;
	else if (a == planc_attr_shared_optin) *v = 232448;
	else r = INVALID_VALUE;
})

CALL(cuDevicePrimaryCtxRetain, (CUcontext *to, CUdevice d), 0, {
	for (Context *c : contexts()) if (c->device == d && c->live) { c->users++; *to = (CUcontext)(Object *)c; return 0; }
	Context *c = make<Context>(CONTEXT);
	c->device = d;
	c->users = 1;
	contexts().push_back(c);
	*to = (CUcontext)(Object *)c;
})
CALL(cuDevicePrimaryCtxRelease_v2, (CUdevice d), 0, {
	r = INVALID_CONTEXT;
	for (Context *c : contexts())
		if (c->device == d && c->live) {
			r = 0;
			if (--c->users) return 0;
			leaks(c);
			say("released: device %d", d);
			c->live = false;
		}
})
CALL(cuCtxSetCurrent, (CUcontext to), 0, {
	Context *c = is<Context>(to, CONTEXT);
	if (to && !c) r = INVALID_CONTEXT;
	else current = c;
})
CALL(cuCtxGetCurrent, (CUcontext *c), 0, { *c = (CUcontext)(Object *)current; })
CALL(cuCtxSynchronize, (void), 1, {
	if (capturing) r = spoil();
	else drive(std::vector<Work>(current->work)), r = current->lost;
})
CALL(cuCtxEnablePeerAccess, (CUcontext p, unsigned), 1, { NEED(Context, c, p, CONTEXT) if (!current->reach.insert(c).second) r = planc_peer_already; })
CALL(cuMemGetInfo_v2, (size_t *f, size_t *t), 1, {
	*f = *t = total();
	for (auto &m : memory) if (m.second->kind == MEMORY && m.second->context == current) *f -= m.second->bytes;
})

// take maps memory between guard pages. The memory is NaN until it is written.
static Allocation *take(Kind kind, size_t bytes) {
	size_t page = 4096, size = (bytes + page - 1) / page * page + 2 * page;
	char *whole = (char *)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (whole == MAP_FAILED) return NULL;
	mprotect(whole, page, PROT_NONE);
	mprotect(whole + size - page, page, PROT_NONE);
	memset(whole + page, 0xff, size - 2 * page);
	Allocation *a = make<Allocation>(kind);
	a->whole = whole;
	a->size = size;
	// The memory ends as close to the guard page as the driver's alignment allows, so that an overrun soon
	// reaches the page.
	a->begin = (uint64_t)(whole + size - page - (bytes + 255) / 256 * 256);
	a->bytes = bytes;
	memory[a->begin] = a;
	return a;
}

// untouched reports whether the guard bytes around memory are unchanged.
static bool untouched(Allocation *a) {
	for (char *p = a->whole + 4096; p < (char *)a->begin; p++) if (*p != (char)0xff) return false;
	for (char *p = (char *)a->begin + a->bytes; p < a->whole + a->size - 4096; p++) if (*p != (char)0xff) return false;
	return true;
}

// give unmaps memory for good: whoever touches it later crashes.
static int give(uint64_t p, Kind kind) {
	auto m = memory.find(p);
	if (m == memory.end() || m->second->kind != kind) return INVALID_VALUE;
	Allocation *a = m->second;
	if (!untouched(a)) fault(a->context, ILLEGAL_ADDRESS, std::string(kinds[kind]) + " " + std::to_string(a->id) + " of " + std::to_string(a->bytes) + " bytes was written beyond its ends");
	a->live = false;
	memory.erase(m);
	mmap(a->whole, a->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	return 0;
}
CALL(cuMemAlloc_v2, (CUdeviceptr *p, size_t n), 1, {
	if (capturing) r = spoil();
	else if (!n) r = INVALID_VALUE;
	else if (Allocation *a = take(MEMORY, n)) *p = a->begin;
	else r = OUT_OF_MEMORY;
})
CALL(cuMemFree_v2, (CUdeviceptr p), 1, {
	if (capturing) r = spoil();
	else r = p ? give(p, MEMORY) : 0;
})
CALL(cuMemHostAlloc, (void **p, size_t n, unsigned), 1, {
	if (capturing) r = spoil();
	else if (Allocation *a = take(PINNED, n)) *p = (void *)a->begin;
	else r = OUT_OF_MEMORY;
})
CALL(cuMemFreeHost, (void *p), 1, {
	if (capturing) r = spoil();
	else r = give((uint64_t)p, PINNED);
})

// A module's image is this magic, the length of a shared library as 8 bytes, and the library. The emulated
// nvcc writes it.
static const char magic[] = "planc emulated module\n\n";

// load opens a shared library that is in memory. A library that is already open is not opened again,
// because it does not know its device.
static void *load(const std::string &data) {
	static std::map<std::string, void *> loaded;
	void *&library = loaded[data];
	if (library) return library;
	int file = memfd_create("planc-module", MFD_CLOEXEC);
	for (size_t at = 0; at < data.size();) {
		ssize_t n = write(file, data.data() + at, data.size() - at);
		if (n <= 0) die("a module cannot be written: %m");
		at += n;
	}
	char path[64];
	// it stays open: otherwise another library would get the same name and be taken for this one
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) die("a module does not load: %s", dlerror());
	return library;
}

CALL(cuModuleLoadData, (CUmodule *to, const void *image), 1, {
	if (capturing) return spoil();
	if (memcmp(image, magic, sizeof magic)) return INVALID_IMAGE;
	uint64_t size;
	memcpy(&size, (const char *)image + sizeof magic, sizeof size);
	Module *m = make<Module>(MODULE);
	m->library = load(std::string((const char *)image + sizeof magic + sizeof size, size));
	m->kernels = (const Export *)dlsym(m->library, "planc_kernels");
	m->launch = (Launcher)dlsym(m->library, "planc_launch");
	m->early = (EarlyLauncher)dlsym(m->library, "planc_early");
	*to = (CUmodule)(Object *)m;
})
static bool eagerLoading() {
	const char *mode = getenv("CUDA_MODULE_LOADING");
	return mode && !strcmp(mode, "EAGER");
}
static unsigned kernels(const Module *m) {
	unsigned n = 0;
	while (m->kernels[n].name) n++;
	return n;
}
static Function *function(Module *m, const Export *e) {
	Function *f = make<Function>(FUNCTION);
	f->module = m;
	f->kernel = e;
	return f;
}
CALL(cuModuleGetFunctionCount, (unsigned *n, CUmodule h), 1, { NEED(Module, m, h, MODULE) *n = kernels(m); })
CALL(cuModuleEnumerateFunctions, (CUfunction *to, unsigned n, CUmodule h), 1, {
	NEED(Module, m, h, MODULE)
	if (n > kernels(m)) return INVALID_VALUE;
	for (unsigned i = 0; i < n; i++) to[i] = (CUfunction)(Object *)function(m, &m->kernels[i]);
})
CALL(cuFuncLoad, (CUfunction h), 1, {
	NEED(Function, f, h, FUNCTION)
	if (capturing) return spoil();
	f->module->loaded.insert(f->kernel);
})
CALL(cuModuleUnload, (CUmodule h), 1, { NEED(Module, m, h, MODULE) m->live = false; })
CALL(cuModuleGetFunction, (CUfunction *to, CUmodule h, const char *name), 1, {
	NEED(Module, m, h, MODULE)
	r = NOT_FOUND;
	for (const Export *e = m->kernels; e->name; e++)
		if (!strcmp(e->name, name)) {
			*to = (CUfunction)(Object *)function(m, e);
			r = 0;
		}
})
CALL(cuFuncSetAttribute, (CUfunction h, CUfunction_attribute a, int v), 1, {
	NEED(Function, f, h, FUNCTION)
	if (a == planc_func_dynamic_shared) f->shared = v, r = v > 232448 ? INVALID_VALUE : 0;
	else if (a != planc_func_non_portable_cluster) r = INVALID_VALUE;
})
CALL(cuFuncGetAttribute, (int *v, CUfunction_attribute a, CUfunction h), 1, {
	NEED(Function, f, h, FUNCTION)
	*v = a == planc_func_max_threads ? 1024 : a == planc_func_registers ? 32 : 0;
})

// check returns the error of an invalid launch of the function, or 0.
static int check(Function *f, const unsigned *g, const unsigned *b, unsigned shared) {
	if (!f->module->live) return INVALID_HANDLE;
	if (!g[0] || !g[1] || !g[2] || !b[0] || !b[1] || !b[2] || (uint64_t)b[0] * b[1] * b[2] > 1024 || g[1] > 65535 || g[2] > 65535 || b[2] > 64 || g[0] > 0x7fffffff) return INVALID_VALUE;
	return (int)shared > f->shared ? INVALID_VALUE : 0;
}

bool loadsLate(Context *c, const std::string &kernel) {
	if (eagerLoading() || !c->loaded.insert(kernel).second || !c->stepping) return false;
	fprintf(stderr, "emulated GPU: device %d loads code in a training step, for %s\n", c->device, kernel.c_str());
	return true;
}

// lazilyLoaded loads the code of a kernel at its first launch. It waits for all work of the context, as a real driver
// may, and is not allowed in a capture.
static int lazilyLoaded(Function *f) {
	if (!eagerLoading() && !f->module->loaded.count(f->kernel)) {
		if (capturing) return spoil();
		drive(std::vector<Work>(current->work.begin(), current->work.end()));
		if (current->lost) return current->lost;
	}
	f->module->loaded.insert(f->kernel);
	return 0;
}

// beginsStep reports whether a training step begins with the kernel, as PLANC_EMULATED_STEP says.
static bool beginsStep(const Function *f) {
	const char *name = getenv("PLANC_EMULATED_STEP");
	return name && !strcmp(name, f->kernel->name);
}

// launch enqueues a kernel on a stream, with a copy of its arguments. If early, the kernel may begin before the previous
// one has ended. A GPU ignores that if anything else was enqueued between them. Here it is an error, because planc does
// not ask for it.
static int launch(Function *f, const unsigned *g, const unsigned *b, unsigned shared, Stream *s, void **params, bool early) {
	int r = check(f, g, b, shared);
	if (!r) r = lazilyLoaded(f);
	if (r) return r;
	if (early && !s->afterKernel) die("stream %d: %s is launched early, but not directly after a kernel", s->id, f->kernel->name);
	auto args = std::make_shared<std::vector<std::vector<char>>>();
	for (int i = 0; f->kernel->sizes[i]; i++) {
		args->emplace_back((char *)params[i], (char *)params[i] + f->kernel->sizes[i]);
	}
	struct { uint32_t grid[3], block[3]; } shape = {{g[0], g[1], g[2]}, {b[0], b[1], b[2]}};
	Context *c = s->context;
	if (beginsStep(f) && !c->stepping) {
		c->stepping = true;
		say("device %d begins its first step", c->device);
	}
	char text[256];
	snprintf(text, sizeof text, "stream %d: %s <%u,%u,%u|%u,%u,%u>%s", s->id, f->kernel->name, g[0], g[1], g[2], b[0], b[1], b[2], early ? " early" : "");
	r = put(s, text, [=]() -> std::string {
		std::vector<void *> places;
		for (size_t i = 0; i < args->size(); i++) {
			uint64_t p;
			places.push_back((*args)[i].data());
			if (!f->kernel->pointer[i]) continue;
			memcpy(&p, (*args)[i].data(), 8);
			std::string why = p ? touches(c, p, 0, ("parameter " + std::to_string(i)).c_str()) : "";
			if (!why.empty()) return why;
		}
		if (early && f->module->begun.insert(f->kernel).second) {
			std::string why = f->module->early(f->kernel->run, places.data(), f->kernel->pointer, places.size(), shape.block);
			if (!why.empty()) return why;
		}
		return f->module->launch(f->kernel->run, places.data(), shape.grid, shape.block, shared, chance() % 3);
	});
	s->afterKernel = true;
	return r;
}
CALL(cuLaunchKernel, (CUfunction h, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream t, void **params, void **), 1, {
	NEED(Function, f, h, FUNCTION)
	NEED(Stream, s, t, STREAM)
	unsigned g[] = {gx, gy, gz};
	unsigned b[] = {bx, by, bz};
	r = launch(f, g, b, shared, s, params, false);
})
CALL(cuLaunchKernelEx, (const CUlaunchConfig *c, CUfunction h, void **params, void **), 1, {
	NEED(Function, f, h, FUNCTION)
	NEED(Stream, s, c->hStream, STREAM)
	unsigned g[] = {c->gridDimX, c->gridDimY, c->gridDimZ};
	unsigned b[] = {c->blockDimX, c->blockDimY, c->blockDimZ};
	bool early = false;
	for (unsigned i = 0; i < c->numAttrs; i++) early |= c->attrs[i].id == planc_launch_early && c->attrs[i].value.programmaticStreamSerializationAllowed;
	r = launch(f, g, b, c->sharedMemBytes, s, params, early);
})

// freeStreams ends the capture of all streams that were drawn into a graph.
void freeStreams(Graph *g) {
	for (auto &o : objects)
		if (o.second->kind == STREAM) {
			Stream *s = static_cast<Stream *>(o.second);
			if (s->graph == g) s->graph = nullptr, s->at.clear();
		}
}
