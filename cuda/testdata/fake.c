// A driver without a GPU, for tests: device memory is host memory, work is done when it is enqueued, and
// each call is checked and logged. A module is the text "fake" followed by one line for each kernel: its
// name and the size of each argument, p for a pointer. Built as libcuda.so.1.
#include "fake.h"
#include "../driver.h"

enum { INVALID_VALUE = 1, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700,
	CAPTURE_UNSUPPORTED = 900, CAPTURE_UNJOINED = 904 };

static __thread struct object *current;   // the context that is bound to this thread
static __thread struct object *capturing; // the graph that this thread captures into
static struct object *primary[2];
static int users[2];

struct op { // work on a stream
	struct op *next;
	char text[512];
	void *to;
	const void *from;
	size_t bytes;
	int value; // of a memset
	enum { NOTHING, COPY, FILL } does;
};

static void run(const struct op *op) {
	say("%s", op->text);
	if (op->does == COPY) memcpy(op->to, op->from, op->bytes);
	if (op->does == FILL) memset(op->to, op->value, op->bytes);
}

// put does the work, or captures it if the stream is captured.
static int put(struct object *stream, struct op op) {
	if (!is(stream, STREAM)) return INVALID_HANDLE;
	if (!stream->graph) {
		run(&op);
		return 0;
	}
	struct op **end = &stream->graph->ops;
	while (*end) end = &(*end)->next;
	*end = malloc(sizeof op);
	**end = op;
	(*end)->next = NULL;
	stream->open = 1;
	return 0;
}

// CALL(NAME, parameters, whether the call needs a bound context, body): the body sets r; it is not run if
// the test wants the call to fail.
#define CALL(name, params, bound, ...) \
	CUresult name params { \
		pthread_mutex_lock(&mutex); \
		int r = told(#name); \
		if (!r && bound && !is(current, CONTEXT)) r = INVALID_CONTEXT; \
		if (!r) { __VA_ARGS__ } \
		if (r) say(#name " -> %d", r); \
		pthread_mutex_unlock(&mutex); \
		return r; \
	}
#define NEED(handle, kind) if (!is(handle, kind)) { r = INVALID_HANDLE; } else
#define ID(handle) (((struct object *)handle)->id)

// a test begins: it does not inherit objects that earlier tests left open
CALL(cuInit, (unsigned flags), 0, (void)flags;
	objects = NULL;
	memset(count, 0, sizeof count);
	memset(users, 0, sizeof users);)
#ifdef FAKE_OLD
#define VERSION 12080
#else
#define VERSION 13050
#endif
CALL(cuDriverGetVersion, (int *v), 0, *v = VERSION;)

CUresult cuGetErrorName(CUresult r, const char **text) {
	*text = r == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : r == 100 ? "CUDA_ERROR_NO_DEVICE" : r == 201 ? "CUDA_ERROR_INVALID_CONTEXT" : r == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : NULL;
	return *text ? 0 : INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult r, const char **text) {
	*text = r == 2 ? "out of memory" : r == 100 ? "no CUDA-capable device is detected" : r == 201 ? "invalid device context" : r == 700 ? "an illegal memory access was encountered" : NULL;
	return *text ? 0 : INVALID_VALUE;
}

CALL(cuDeviceGetCount, (int *n), 0, *n = 2;)
CALL(cuDeviceGet, (CUdevice *d, int i), 0, *d = i;)
CALL(cuDeviceGetName, (char *name, int n, CUdevice d), 0, snprintf(name, n, "Fake GPU %d", d);)
CALL(cuDeviceGetPCIBusId, (char *id, int n, CUdevice d), 0, snprintf(id, n, "0000:%02x:00.0", d + 1);)
CALL(cuDeviceTotalMem_v2, (size_t *n, CUdevice d), 0, (void)d; *n = (size_t)80 << 30;)
CALL(cuDeviceCanAccessPeer, (int *can, CUdevice d, CUdevice p), 0, *can = d != p;)
CALL(cuDeviceGetAttribute, (int *v, CUdevice_attribute a, CUdevice d), 0, (void)d;
	*v = a == planc_attr_major ? 9 : a == planc_attr_minor ? 0 : a == planc_attr_multiprocessors ? 132 : a == planc_attr_shared_optin ? 232448 : -1;)

CALL(cuDevicePrimaryCtxRetain, (CUcontext *c, CUdevice d), 0,
	if (!users[d]++) primary[d] = make(CONTEXT);
	*c = (void *)primary[d];
	say("retain context %d", ID(*c));)
CALL(cuDevicePrimaryCtxRelease_v2, (CUdevice d), 0,
	say("release context %d", primary[d]->id);
	if (!--users[d]) { primary[d]->live = 0; leaks(); })
CALL(cuCtxSetCurrent, (CUcontext c), 0, if (c && !is(c, CONTEXT)) r = INVALID_CONTEXT; else { current = (void *)c; capturing = NULL; })
CALL(cuCtxGetCurrent, (CUcontext *c), 0, *c = (void *)current;)
CALL(cuCtxSynchronize, (void), 1, if (capturing) r = CAPTURE_UNSUPPORTED; else say("synchronize context %d", current->id);)
CALL(cuCtxEnablePeerAccess, (CUcontext p, unsigned f), 1, (void)f; NEED(p, CONTEXT) say("context %d reaches context %d", current->id, ID(p));)
CALL(cuMemGetInfo_v2, (size_t *f, size_t *t), 1, *t = (size_t)80 << 30; *f = *t / 2;)

CALL(cuModuleLoadData, (CUmodule *m, const void *image), 1,
	if (strncmp(image, "fake\n", 5)) { r = INVALID_IMAGE; } else {
		struct object *o = make(MODULE);
		o->text = strdup(image);
		*m = (void *)o;
		say("module %d", o->id);
	})
CALL(cuModuleUnload, (CUmodule m), 1, NEED(m, MODULE) { ((struct object *)m)->live = 0; say("unload module %d", ID(m)); })
CALL(cuModuleGetFunction, (CUfunction *f, CUmodule m, const char *name), 1, NEED(m, MODULE) {
	char line[256];
	snprintf(line, sizeof line, "\n%s ", name);
	char *at = strstr(((struct object *)m)->text, line);
	if (!at) { r = NOT_FOUND; } else {
		struct object *o = make(FUNCTION);
		o->of = (void *)m;
		o->text = strndup(at + 1, strcspn(at + 1, "\n"));
		*f = (void *)o;
	}
})
#ifndef FAKE_OLD // nor functions that load a kernel
static unsigned kernels(CUmodule m) {
	unsigned n = 0;
	for (const char *c = ((struct object *)m)->text + strlen("fake\n"); *c; c++) n += *c == '\n' || !c[1];
	return n;
}
CALL(cuModuleGetFunctionCount, (unsigned *n, CUmodule m), 1, NEED(m, MODULE) *n = kernels(m);)
CALL(cuModuleEnumerateFunctions, (CUfunction *f, unsigned n, CUmodule m), 1, NEED(m, MODULE) {
	if (n > kernels(m)) { r = INVALID_VALUE; } else for (unsigned i = 0; i < n; i++) {
		struct object *o = make(FUNCTION);
		o->of = (void *)m;
		f[i] = (void *)o;
	}
})
CALL(cuFuncLoad, (CUfunction f), 1, NEED(f, FUNCTION) say("load function of module %d", ((struct object *)f)->of->id);)
#endif
CALL(cuFuncSetAttribute, (CUfunction f, CUfunction_attribute a, int v), 1, NEED(f, FUNCTION) say("function %d attribute %d = %d", ID(f), (int)a, v);)
CALL(cuFuncGetAttribute, (int *v, CUfunction_attribute a, CUfunction f), 1, NEED(f, FUNCTION) *v = 10 + (int)a;)

// launch reads the arguments as the kernel's line describes them and enqueues their text.
static int launch(CUfunction f, CUstream s, const char *shape, void **params) {
	struct object *o = (void *)f;
	if (!is(o, FUNCTION) || !o->of->live) return INVALID_HANDLE;
	struct op op = {0};
	char *line = strdup(o->text), *save = NULL, *word = strtok_r(line, " ", &save);
	int n = snprintf(op.text, sizeof op.text, "stream %d %s %s", ID(s), word, shape), r = 0;
	for (int i = 0; (word = strtok_r(NULL, " ", &save)); i++) {
		uint64_t v = 0;
		if (*word == 'p') {
			memcpy(&v, params[i], 8);
			if (!inside(v, 1, MEMORY)) r = ILLEGAL_ADDRESS;
			n += snprintf(op.text + n, sizeof op.text - n, " p");
			continue;
		}
		for (int b = atoi(word) - 1; b >= 0; b--) n += snprintf(op.text + n, sizeof op.text - n, b == atoi(word) - 1 ? " %02x" : "%02x", ((unsigned char *)params[i])[b]);
	}
	free(line);
	return r ? r : put((void *)s, op);
}
CALL(cuLaunchKernel, (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **params, void **extra), 1,
	(void)extra; char shape[128];
	snprintf(shape, sizeof shape, "<%u,%u,%u|%u,%u,%u|%u>", gx, gy, gz, bx, by, bz, shared);
	NEED(s, STREAM) r = launch(f, s, shape, params);)
#ifndef FAKE_OLD // FAKE_OLD is a driver without clusters
CALL(cuLaunchKernelEx, (const CUlaunchConfig *c, CUfunction f, void **params, void **extra), 1,
	(void)extra; char shape[128];
	int n = snprintf(shape, sizeof shape, "<%u,%u,%u|%u,%u,%u|%u", c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes);
	for (unsigned i = 0; i < c->numAttrs; i++) {
		const CUlaunchAttribute *a = &c->attrs[i];
		if (a->id == 4) n += snprintf(shape + n, sizeof shape - n, "|cluster %u,%u,%u", a->value.clusterDim.x, a->value.clusterDim.y, a->value.clusterDim.z);
		else if (a->id == 6 && a->value.programmaticStreamSerializationAllowed == 1) n += snprintf(shape + n, sizeof shape - n, "|early");
		else r = INVALID_VALUE;
	}
	snprintf(shape + n, sizeof shape - n, ">");
	if (!r) { NEED(c->hStream, STREAM) r = launch(f, c->hStream, shape, params); })
CALL(cuTensorMapEncodeTiled, (CUtensorMap *m, CUtensorMapDataType type, cuuint32_t rank, void *p, const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave i, CUtensorMapSwizzle w, CUtensorMapL2promotion l, CUtensorMapFloatOOBfill f), 1,
	(void)p; say("tensor map type %d rank %u dims %llu,%llu stride %llu box %u,%u steps %u,%u swizzle %d, %d %d %d", type, rank, (unsigned long long)dims[0], (unsigned long long)dims[1], (unsigned long long)strides[0], box[0], box[1], steps[0], steps[1], w, i, l, f);
	memset(m, 0x5a, sizeof *m);)
#endif

CALL(cuMemAlloc_v2, (CUdeviceptr *p, size_t n), 1,
	if (capturing) { r = CAPTURE_UNSUPPORTED; } else {
		struct object *o = make(MEMORY);
		o->memory = malloc(n);
		o->bytes = n;
		*p = (CUdeviceptr)o->memory;
		say("memory %d: %zu bytes", o->id, n);
	})
static int release(uint64_t p, enum kind kind) {
	for (struct object *o = objects; o; o = o->next)
		if (o->live && o->kind == kind && (uint64_t)o->memory == p) {
			o->live = 0;
			free(o->memory);
			say("free %s %d", kinds[kind], o->id);
			return 0;
		}
	return INVALID_VALUE;
}
CALL(cuMemFree_v2, (CUdeviceptr p), 1, r = release(p, MEMORY);)
CALL(cuMemHostAlloc, (void **p, size_t n, unsigned flags), 1,
	struct object *o = make(PINNED);
	*p = o->memory = malloc(n);
	o->bytes = n;
	say("pinned %d: %zu bytes, flags %u", o->id, n, flags);)
CALL(cuMemFreeHost, (void *p), 1, r = release((uint64_t)p, PINNED);)

// copies checks both addresses and enqueues the copy.
static int copies(const char *what, uint64_t to, enum kind kt, uint64_t from, enum kind kf, size_t n, CUstream s) {
	if (!is(s, STREAM)) return INVALID_HANDLE;
	if (!inside(to, n, kt) || !inside(from, n, kf)) return INVALID_VALUE;
	struct op op = {.to = (void *)to, .from = (void *)from, .bytes = n, .does = COPY};
	snprintf(op.text, sizeof op.text, "stream %d %s %zu bytes", ID(s), what, n);
	return put((void *)s, op);
}
CALL(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t n, CUstream s), 1, r = copies("upload", to, MEMORY, (uint64_t)from, PINNED, n, s);)
CALL(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t n, CUstream s), 1, r = copies("download", (uint64_t)to, PINNED, from, MEMORY, n, s);)
CALL(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), 1, r = copies("copy", to, MEMORY, from, MEMORY, n, s);)
CALL(cuMemsetD8Async, (CUdeviceptr to, unsigned char v, size_t n, CUstream s), 1, NEED(s, STREAM) {
	struct op op = {.to = (void *)to, .value = v, .bytes = n, .does = FILL};
	snprintf(op.text, sizeof op.text, "stream %d fill %zu bytes with %d", ID(s), n, v);
	r = inside(to, n, MEMORY) ? put((void *)s, op) : INVALID_VALUE;
})

CALL(cuStreamCreateWithPriority, (CUstream *s, unsigned flags, int priority), 1,
	*s = (void *)make(STREAM);
	say("stream %d: flags %u, priority %d", ID(*s), flags, priority);)
CALL(cuStreamDestroy_v2, (CUstream s), 1, NEED(s, STREAM) ((struct object *)s)->live = 0;)
CALL(cuStreamSynchronize, (CUstream s), 1, NEED(s, STREAM) if (((struct object *)s)->graph) r = CAPTURE_UNSUPPORTED; else say("synchronize stream %d", ID(s));)
CALL(cuStreamQuery, (CUstream s), 1, NEED(s, STREAM) r = 0;)
CALL(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned flags), 1, (void)flags; NEED(s, STREAM) NEED(e, EVENT) {
	struct object *event = (void *)e;
	struct object *stream = (void *)s;
	if (event->graph && !stream->graph) stream->graph = event->graph; // the stream is drawn into the capture
	else if (event->graph && event->last) event->last->open = 0;
	say("stream %d waits for event %d", ID(s), ID(e));
})
CALL(cuEventCreate, (CUevent *e, unsigned flags), 1, *e = (void *)make(EVENT); say("event %d: flags %u", ID(*e), flags);)
CALL(cuEventDestroy_v2, (CUevent e), 1, NEED(e, EVENT) ((struct object *)e)->live = 0;)
CALL(cuEventRecord, (CUevent e, CUstream s), 1, NEED(e, EVENT) NEED(s, STREAM) {
	struct object *event = (void *)e;
	event->last = (void *)s;
	event->graph = event->last->graph;
	say("event %d after stream %d", ID(e), ID(s));
})
CALL(cuEventSynchronize, (CUevent e), 1, NEED(e, EVENT) say("synchronize event %d", ID(e));)

// elapsed is 1.5, or the next digit of PLANC_FAKE_TIMES.
static float elapsed(void) {
	static unsigned at;
	const char *times = getenv("PLANC_FAKE_TIMES");
	return times && *times ? times[at++ % strlen(times)] - '0' : 1.5f;
}
CALL(cuEventElapsedTime, (float *ms, CUevent a, CUevent b), 1, NEED(a, EVENT) NEED(b, EVENT) *ms = elapsed();)

CALL(cuStreamBeginCapture_v2, (CUstream s, CUstreamCaptureMode mode), 1, NEED(s, STREAM) {
	capturing = ((struct object *)s)->graph = make(GRAPH);
	say("stream %d is captured, mode %d", ID(s), (int)mode);
})
CALL(cuStreamEndCapture, (CUstream s, CUgraph *g), 1, NEED(s, STREAM) {
	struct object *graph = ((struct object *)s)->graph;
	for (struct object *o = objects; o; o = o->next)
		if (o->kind == STREAM && o->graph == graph) {
			if (o != (void *)s && o->open) r = CAPTURE_UNJOINED;
			o->graph = NULL;
			o->open = 0;
		}
	capturing = NULL;
	if (r) graph->live = 0;
	*g = r ? NULL : (void *)graph;
	say("stream %d has been captured", ID(s));
})
CALL(cuGraphInstantiateWithFlags, (CUgraphExec *x, CUgraph g, unsigned long long flags), 1, NEED(g, GRAPH) {
	say("graph %d: flags %llu", ID(g), flags);
	struct object *o = make(EXEC);
	o->of = (void *)g;
	*x = (void *)o;
})
CALL(cuGraphLaunch, (CUgraphExec x, CUstream s), 1, NEED(x, EXEC) NEED(s, STREAM) {
	say("stream %d replays graph %d", ID(s), ((struct object *)x)->of->id);
	for (struct op *op = ((struct object *)x)->of->ops; op; op = op->next) run(op);
})
CALL(cuGraphExecDestroy, (CUgraphExec x), 1, NEED(x, EXEC) ((struct object *)x)->live = 0;)
#ifndef FAKE_ANCIENT // FAKE_ANCIENT is a driver that is too old
CALL(cuGraphDestroy, (CUgraph g), 1, NEED(g, GRAPH) ((struct object *)g)->live = 0;)
#endif
