// NCCL without GPUs, for tests: ranks are threads of one process that wait for each other in the call, and
// memory is host memory. Built as libnccl.so.2.
#include "fake.h"
#include "../nccl.h"

enum { MAX = 8, INVALID_ARGUMENT = 4, IN_PROGRESS = 7 };

struct call { // one rank's part in a collective
	char kind; // r: all-reduce, s: reduce-scatter, g: all-gather, b: broadcast, S: send, R: receive
	const char *from;
	char *to;
	size_t count;
	int type, op, peer;
	struct ncclComm *comm;
};

struct world {
	char id[128];
	int ranks, joined, arrived, generation, splits;
	struct ncclComm *comm[MAX];
	struct call call[MAX];
	const struct call *mail[MAX][MAX]; // [sender][receiver]
	struct world *next;
};

struct ncclComm {
	struct world *world;
	int rank, error, color, key, registered;
	ncclComm_t *part;
};

static struct world *worlds;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static __thread int depth;
static __thread struct call queue[64];
static __thread int queued;

#define CALL(name, params, ...) \
	ncclResult_t name params { \
		pthread_mutex_lock(&mutex); \
		int r = told(#name); \
		if (!r) { __VA_ARGS__ } \
		pthread_mutex_unlock(&mutex); \
		return r; \
	}

const char *ncclGetErrorString(ncclResult_t r) { return r == INVALID_ARGUMENT ? "invalid argument" : r == 6 ? "remote process exited or there was a network error" : "unhandled system error"; }
const char *ncclGetLastError(ncclComm_t c) { return c ? "a word of the fake" : ""; }
CALL(ncclGetVersion, (int *v), *v = 22304;)
CALL(ncclGetUniqueId, (ncclUniqueId *id), static char n; memset(id, 0, sizeof *id); id->internal[0] = ++n;)

// configured logs the configuration values that are not left to NCCL, and what the environment sets for
// algorithms.
static void configured(const struct planc_nccl_config *k, int rank) {
	if (k->minCTAs != planc_nccl_unset || k->maxCTAs != planc_nccl_unset) say("rank %d: %d to %d CTAs", rank, k->minCTAs, k->maxCTAs);
	const char *algo = getenv("NCCL_ALGO");
	if (algo) say("rank %d: algorithm %s", rank, algo);
}

static ncclComm_t join(struct world *w, int rank) {
	ncclComm_t c = calloc(1, sizeof *c);
	c->world = w;
	c->rank = rank;
	w->comm[rank] = c;
	w->joined++;
	return c;
}
CALL(ncclCommInitRankConfig, (ncclComm_t *c, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config),
	struct world *w = worlds;
	struct planc_nccl_config *k = (void *)config;
	configured(k, rank);
	if (k->magic != 0xcafebeef || k->size != sizeof *k || k->blocking) r = INVALID_ARGUMENT;
	while (w && memcmp(w->id, id.internal, 128)) w = w->next;
	if (!w) {
		w = calloc(1, sizeof *w);
		memcpy(w->id, id.internal, 128);
		w->ranks = ranks;
		w->next = worlds;
		worlds = w;
	}
	if (rank < 0 || rank >= ranks || w->ranks != ranks || w->comm[rank]) r = INVALID_ARGUMENT;
	if (!r) { *c = join(w, rank); r = IN_PROGRESS; })

// part splits a world when all its ranks have named a color: the communicators are written only then.
static void part(struct world *w) {
	for (int i = 0; i < w->ranks; i++) {
		if (w->comm[i]->color < 0) continue; // this rank wants no communicator
		struct world *p = calloc(1, sizeof *p);
		int at = 0;
		for (int j = 0; j < w->ranks; j++)
			if (w->comm[j]->color == w->comm[i]->color) {
				p->ranks++;
				at += w->comm[j]->key < w->comm[i]->key || (w->comm[j]->key == w->comm[i]->key && j < i);
			}
		for (int j = 0; j < i; j++)
			if (w->comm[j]->color == w->comm[i]->color) { free(p); p = (*w->comm[j]->part)->world; break; }
		*w->comm[i]->part = join(p, at);
	}
	w->splits = 0;
	for (int i = 0; i < w->ranks; i++) w->comm[i]->part = NULL;
}
CALL(ncclCommSplit, (ncclComm_t c, int color, int key, ncclComm_t *to, ncclConfig_t *config),
	configured((void *)config, c->rank);
	c->color = color;
	c->key = key;
	c->part = to; // written later; the real library also returns success at once
	if (++c->world->splits == c->world->ranks) part(c->world);)
CALL(ncclCommGetAsyncError, (ncclComm_t c, ncclResult_t *e), *e = c->error ? c->error : c->world->joined < c->world->ranks || c->part ? IN_PROGRESS : 0;)
CALL(ncclCommCount, (const ncclComm_t c, int *n), *n = c->world->ranks;)
CALL(ncclCommUserRank, (const ncclComm_t c, int *n), *n = c->rank;)
CALL(ncclCommFinalize, (ncclComm_t c), if (c->registered) say("rank %d ends with %d buffers registered", c->rank, c->registered);)
#ifndef FAKE_OLD // FAKE_OLD is a library before 2.19
CALL(ncclMemAlloc, (void **p, size_t n), *p = malloc(n); say("nccl memory of %zu bytes", n);)
CALL(ncclMemFree, (void *p), free(p); say("nccl memory is freed");)
CALL(ncclCommRegister, (const ncclComm_t c, void *p, size_t n, void **handle),
	if (!getenv("NCCL_LOCAL_REGISTER")) *handle = p;
	if (*handle) c->registered++;
	say("register %zu bytes as rank %d of %d", n, c->rank, c->world->ranks);)
CALL(ncclCommDeregister, (const ncclComm_t c, void *handle), (void)handle; c->registered--; say("deregister as rank %d of %d", c->rank, c->world->ranks);)
#endif
CALL(ncclCommDestroy, (ncclComm_t c), say("destroy rank %d of %d", c->rank, c->world->ranks);)
CALL(ncclCommAbort, (ncclComm_t c),
	say("abort rank %d of %d", c->rank, c->world->ranks);
	for (int i = 0; i < c->world->ranks; i++) if (c->world->comm[i]) c->world->comm[i]->error = 6;)

// reduce reduces the ranks' values at one index; values are floats.
static float reduce(struct world *w, size_t i, int op) {
	float x = ((const float *)w->call[0].from)[i];
	for (int k = 1; k < w->ranks; k++) {
		float y = ((const float *)w->call[k].from)[i];
		x = op == 2 ? (y > x ? y : x) : x + y;
	}
	return op == 4 ? x / w->ranks : x;
}

// compute computes a collective that all ranks have joined; results are complete before they are written,
// since ranks may work in place.
static void compute(struct world *w) {
	const struct call *c = w->call;
	size_t n = c->count, whole = c->kind == 's' || c->kind == 'g' ? n * w->ranks : n;
	float *x = malloc(whole * sizeof *x);
	for (size_t i = 0; i < whole; i++)
		x[i] = c->kind == 'g' ? ((const float *)w->call[i / n].from)[i % n] : c->kind == 'b' ? ((const float *)w->call[c->peer].from)[i] : reduce(w, i, c->op);
	for (int k = 0; k < w->ranks; k++)
		memcpy(w->call[k].to, c->kind == 's' ? x + k * n : x, (c->kind == 's' ? n : whole) * sizeof *x);
	free(x);
}

// meet waits until all ranks are in the same collective; the last rank computes it for all.
static int meet(const struct call *c) {
	struct world *w = c->comm->world;
	int generation = w->generation;
	w->call[c->comm->rank] = *c;
	if (++w->arrived < w->ranks) {
		while (w->generation == generation) pthread_cond_wait(&changed, &mutex);
		return 0;
	}
	for (int k = 0; k < w->ranks; k++)
		if (w->call[k].kind != c->kind || w->call[k].count != c->count || w->call[k].op != c->op) say("ranks differ in a collective");
	compute(w);
	w->arrived = 0;
	w->generation++;
	pthread_cond_broadcast(&changed);
	return 0;
}

// begin executes a call, or keeps it until the group ends.
static int begin(struct call c) {
	if (c.type != 7) return INVALID_ARGUMENT;
	if (depth) {
		queue[queued++] = c;
		return 0;
	}
	return c.kind == 'S' || c.kind == 'R' ? INVALID_ARGUMENT /* would hang */ : meet(&c);
}

CALL(ncclGroupStart, (void), depth++;)
CALL(ncclGroupEnd, (void),
	if (--depth == 0) {
		for (int i = 0; i < queued; i++)
			if (queue[i].kind == 'S') queue[i].comm->world->mail[queue[i].comm->rank][queue[i].peer] = &queue[i];
		pthread_cond_broadcast(&changed);
		for (int i = 0; i < queued; i++) {
			struct call *c = &queue[i];
			if (c->kind == 'R') {
				const struct call **m = &c->comm->world->mail[c->peer][c->comm->rank];
				while (!*m) pthread_cond_wait(&changed, &mutex);
				memcpy(c->to, (*m)->from, c->count * sizeof(float));
				*m = NULL;
				pthread_cond_broadcast(&changed);
			} else if (c->kind != 'S') meet(c);
		}
		for (int i = 0; i < queued; i++) // only now may what was sent be overwritten
			while (queue[i].kind == 'S' && queue[i].comm->world->mail[queue[i].comm->rank][queue[i].peer]) pthread_cond_wait(&changed, &mutex);
		queued = 0;
	})

CALL(ncclAllReduce, (const void *from, void *to, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t s), (void)s; r = begin((struct call){'r', from, to, n, t, op, 0, c});)
CALL(ncclReduceScatter, (const void *from, void *to, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t s), (void)s; r = begin((struct call){'s', from, to, n, t, op, 0, c});)
CALL(ncclAllGather, (const void *from, void *to, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s), (void)s; r = begin((struct call){'g', from, to, n, t, 0, 0, c});)
CALL(ncclBroadcast, (const void *from, void *to, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t s), (void)s; r = begin((struct call){'b', from, to, n, t, 0, root, c});)
CALL(ncclSend, (const void *from, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s), (void)s; r = begin((struct call){'S', from, NULL, n, t, 0, peer, c});)
CALL(ncclRecv, (void *to, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s), (void)s; r = begin((struct call){'R', NULL, to, n, t, 0, peer, c});)
