// NCCL: the ranks are threads of one process, or of several (far.cpp). A collective runs when it is at the
// head of the streams of all its ranks. The collectives of a communicator run in the order in which each
// rank called them, on whatever streams.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "nccl_world.h"

#define PROTOTYPE(needed, result, name, params, args) extern "C" result name params;
PLANC_NCCL(PROTOTYPE)

enum { UNHANDLED_CUDA = 1, SYSTEM = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE = 6, IN_PROGRESS = 7 };

static std::vector<World *> worlds;
static thread_local int depth;
static thread_local std::vector<std::pair<Stream *, Part>> group;

#define NCCL(name, params, ...)          \
	extern "C" ncclResult_t name params { \
		Held held;                       \
		int r = 0;                       \
		__VA_ARGS__                      \
		eager();                         \
		return r;                        \
	}
#define NEEDS(h)                                            \
	ncclComm *c = is<ncclComm>(h, COMM);                     \
	if (!c) return INVALID_ARGUMENT;

const char *ncclGetErrorString(ncclResult_t r) { return r == SYSTEM ? "unhandled system error" : r == INVALID_ARGUMENT ? "invalid argument" : r == INVALID_USAGE ? "invalid usage" : r == REMOTE ? "remote process exited or there was a network error" : "unhandled cuda error"; }
const char *ncclGetLastError(ncclComm_t) { return ""; }
NCCL(ncclGetVersion, (int *v), { *v = 22705; })
NCCL(ncclGetUniqueId, (ncclUniqueId *id), { static int n; memset(id, 0, sizeof *id); snprintf(id->internal, sizeof id->internal, "emulated-%d-%d", (int)getpid(), ++n); })

ncclComm *join(World *w, int rank) {
	ncclComm *c = make<ncclComm>(COMM);
	c->world = w;
	c->rank = rank;
	w->comm[rank] = c;
	if (w->far.empty()) w->joined++;
	else farJoin(w, rank);
	return c;
}
World *create(int ranks) {
	World *w = new World();
	w->ranks = ranks;
	w->comm.resize(ranks);
	return w;
}
NCCL(ncclCommInitRankConfig, (ncclComm_t *to, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config), {
	auto *k = (planc_nccl_config *)config;
	if (k->magic != 0xcafebeef || k->size != sizeof *k || k->blocking || !current) return INVALID_ARGUMENT;
	World *w = NULL;
	for (World *o : worlds) if (o->id == id.internal) w = o;
	if (!w) {
		worlds.push_back(w = create(ranks));
		w->id = id.internal;
		w->far = farFolder(id.internal);
	}
	if (rank < 0 || rank >= ranks || w->ranks != ranks || w->comm[rank]) return INVALID_ARGUMENT;
	for (ncclComm *c : w->comm) if (c && c->context == current) die("two ranks of a communicator on device %d", current->device);
	*to = join(w, rank);
	r = IN_PROGRESS;
})

// part splits a world when all its ranks have named a color: the communicators are written only then.
static void part(World *w) {
	std::map<int, std::vector<ncclComm *>> colors;
	for (ncclComm *c : w->comm) colors[c->color].push_back(c);
	Context *before = current;
	for (auto &k : colors) {
		auto &m = k.second;
		if (k.first < 0) { // these ranks want no communicator
			for (ncclComm *c : m) c->part = nullptr;
			continue;
		}
		std::stable_sort(m.begin(), m.end(), [](ncclComm *a, ncclComm *b) { return a->key < b->key; });
		World *p = create(m.size());
		for (size_t i = 0; i < m.size(); i++) {
			current = m[i]->context;
			*m[i]->part = join(p, i);
			m[i]->part = nullptr;
		}
	}
	current = before;
	w->splits = 0;
}
NCCL(ncclCommSplit, (ncclComm_t h, int color, int key, ncclComm_t *to, ncclConfig_t *), {
	NEEDS(h)
	if (c->part || !farJoined(c->world)) return INVALID_USAGE;
	c->color = color;
	c->key = key;
	c->part = to; // written later; the real library also returns success at once
	if (!c->world->far.empty()) farSplit(c);
	else if (++c->world->splits == c->world->ranks) part(c->world);
})
NCCL(ncclCommGetAsyncError, (ncclComm_t h, ncclResult_t *e), {
	NEEDS(h)
	World *w = c->world;
	if (!w->far.empty() && c->part) farParts(w);
	if (!w->far.empty() && !c->error && farAborted(w)) c->error = REMOTE;
	*e = c->error ? c->error : !farJoined(w) || c->part ? (int)IN_PROGRESS : 0;
})
NCCL(ncclCommCount, (const ncclComm_t h, int *n), { NEEDS(h) *n = c->world->ranks; })
NCCL(ncclCommUserRank, (const ncclComm_t h, int *n), { NEEDS(h) *n = c->rank; })
// graphed is the error when a graph contains work of the communicator: NCCL does not destroy a communicator
// that a graph uses.
static std::string graphed(const ncclComm *c) { return launchable(c) ? "a communicator that a graph uses is destroyed, as rank " + std::to_string(c->rank) : ""; }
NCCL(ncclCommFinalize, (ncclComm_t h), {
	NEEDS(h)
	if (registeredOf(c)) die("rank %d of a communicator of %d ends with registered memory", c->rank, c->world->ranks);
	drive({c->last});
	await([=] { return graphed(c); });
})
NCCL(ncclCommDestroy, (ncclComm_t h), { NEEDS(h) c->live = false; })
static bool hangs(const Work &w, const ncclComm *c) {
	for (const Part &p : w->parts)
		if (p.comm == c) return true;
	return false;
}
NCCL(ncclCommAbort, (ncclComm_t h), {
	NEEDS(h)
	for (ncclComm *o : c->world->comm) if (o) o->error = REMOTE;
	if (!c->world->far.empty()) farAbort(c->world);
	c->live = false;
	// Pending work of the communicator ends, as its kernels do on a GPU; work that is enqueued later ends at
	// once.
	for (const Work &w : std::vector<Work>(c->context->work.begin(), c->context->work.end()))
		if (w->begun && !w->done && hangs(w, c)) finish(w);
	await([=] { return graphed(c); });
})

size_t width(int type) { return type == 2 || type == 7 ? 4 : type == 8 ? 8 : type == 6 || type == 9 ? 2 : 0; }

static float bf16(uint16_t b) { uint32_t w = (uint32_t)b << 16; float x; memcpy(&x, &w, 4); return x; }
static uint16_t tobf16(float x) {
	uint32_t b;
	memcpy(&b, &x, 4);
	return x != x ? b >> 16 | 0x40 : (b + 0x7fff + (b >> 16 & 1)) >> 16;
}
struct Float { typedef float type; static float get(const void *p, size_t i) { return ((const float *)p)[i]; } static void set(void *p, size_t i, float v) { ((float *)p)[i] = v; } };
struct Double { typedef double type; static double get(const void *p, size_t i) { return ((const double *)p)[i]; } static void set(void *p, size_t i, double v) { ((double *)p)[i] = v; } };
struct Int { typedef int32_t type; static int32_t get(const void *p, size_t i) { return ((const int32_t *)p)[i]; } static void set(void *p, size_t i, int32_t v) { ((int32_t *)p)[i] = v; } };
struct Half { typedef float type; static float get(const void *p, size_t i) { return ((const _Float16 *)p)[i]; } static void set(void *p, size_t i, float v) { ((_Float16 *)p)[i] = v; } };
struct Brain { typedef float type; static float get(const void *p, size_t i) { return bf16(((const uint16_t *)p)[i]); } static void set(void *p, size_t i, float v) { ((uint16_t *)p)[i] = tobf16(v); } };

// reduce reduces the ranks' values as a ring does: rounded after each rank, each piece starting at another
// rank.
template <class T> static void reduce(const std::vector<const Part *> &p, size_t n, int op, char *out) {
	size_t ranks = p.size();
	for (size_t i = 0; i < n; i++) {
		size_t first = i * ranks / n;
		typename T::type v = T::get(p[first]->from, i);
		for (size_t k = 1; k < ranks; k++) {
			typename T::type x = T::get(p[(first + k) % ranks]->from, i);
			v = op == 2 ? (x > v || x != x ? x : v) : v + x;
			T::set(out, i, v);
			v = T::get(out, i);
		}
		if (op == 4) v /= ranks;
		T::set(out, i, v);
	}
}
static void reduceAny(const std::vector<const Part *> &p, size_t n, char *out) {
	int type = p[0]->type, op = p[0]->op;
	if (type == 7) reduce<Float>(p, n, op, out);
	if (type == 8) reduce<Double>(p, n, op, out);
	if (type == 2) reduce<Int>(p, n, op, out);
	if (type == 6) reduce<Half>(p, n, op, out);
	if (type == 9) reduce<Brain>(p, n, op, out);
}

// compute computes a collective that all ranks have joined. The result is complete before it is written,
// since ranks may work in place.
void compute(const std::vector<const Part *> &p) {
	const Part &c = *p[0];
	size_t ranks = p.size(), one = c.count * width(c.type), whole = c.kind == 's' || c.kind == 'g' ? one * ranks : one;
	std::vector<char> x(whole);
	if (c.kind == 'g')
		for (size_t i = 0; i < ranks; i++) memcpy(x.data() + i * one, p[i]->from, one);
	else if (c.kind == 'b') memcpy(x.data(), p[c.peer]->from, one);
	else reduceAny(p, whole / width(c.type), x.data());
	for (size_t i = 0; i < ranks; i++)
		if (p[i]->to) memcpy(p[i]->to, x.data() + (c.kind == 's' ? i * one : 0), c.kind == 's' ? one : whole);
}

std::string text(const Part &p) {
	static const std::map<char, const char *> names = {{'r', "AllReduce"}, {'s', "ReduceScatter"}, {'g', "AllGather"}, {'b', "Broadcast"}, {'S', "Send"}, {'R', "Receive"}};
	std::string peer = p.kind == 'S' || p.kind == 'R' ? ", peer " + std::to_string(p.peer) : "";
	return std::string(names.at(p.kind)) + " of " + std::to_string(p.count) + " of type " + std::to_string(p.type) + " as rank " + std::to_string(p.comm->rank) + " of " + std::to_string(p.comm->world->ranks) + peer;
}

static Line &mine(const Part &p) {
	World *w = p.comm->world;
	return p.kind == 'S' ? w->lines[{p.comm->rank, p.peer}].first : w->lines[{p.peer, p.comm->rank}].second;
}
static Line &theirs(const Part &p) {
	World *w = p.comm->world;
	return p.kind == 'S' ? w->lines[{p.comm->rank, p.peer}].second : w->lines[{p.peer, p.comm->rank}].first;
}
bool pairwise(const Part &p) { return p.kind == 'S' || p.kind == 'R'; }

static void agree(const Part &a, const Part &b) {
	bool same = pairwise(a) ? a.kind != b.kind : a.kind == b.kind && a.op == b.op && a.peer == b.peer;
	if (!same || a.count != b.count || a.type != b.type) die("ranks differ: %s, but %s", text(a).c_str(), text(b).c_str());
}

std::vector<Work> issue(const Work &w) {
	std::vector<Work> before;
	for (Part &p : w->parts) {
		if (p.comm->last && p.comm->last != w) before.push_back(p.comm->last);
		if (p.comm->last != w) p.comm->first = p.comm->turns;
		p.comm->last = w;
		p.first = p.comm->first;
		if (pairwise(p)) {
			Line &line = mine(p), &other = theirs(p);
			p.turn = line.size();
			line.push_back({w, &p});
			if (!p.comm->world->far.empty()) continue;
			if (p.turn < (long)other.size() && other[p.turn].second) agree(p, *other[p.turn].second);
			continue;
		}
		p.turn = p.comm->turns++;
		Meeting &m = p.comm->world->meetings[p.turn];
		m.issued.resize(p.comm->world->ranks);
		m.part.resize(p.comm->world->ranks);
		for (const Part *o : m.part) if (o && p.comm->world->far.empty()) agree(p, *o);
		m.issued[p.comm->rank] = w;
		m.part[p.comm->rank] = &p;
	}
	return before;
}

// end records that a part is done.
void end(const Work &w) {
	if (!--w->open && !w->done) {
		say("device %d has run %s", w->context->device, w->text.c_str());
		finish(w);
	}
}

// inMemory reports where a part reads or writes memory that is not its device's.
bool inMemory(const Work &w, const Part &p) {
	size_t one = p.count * width(p.type), all = one * p.comm->world->ranks;
	std::string why;
	if (p.from) why = touches(w->context, (uint64_t)p.from, p.kind == 's' ? all : one, "the send buffer");
	if (why.empty() && p.to) why = touches(w->context, (uint64_t)p.to, p.kind == 'g' ? all : one, "the receive buffer");
	if (!why.empty()) fault(w->context, ILLEGAL_ADDRESS, text(p) + ": " + why);
	return why.empty();
}

static void beginPair(const Work &w, Part &p) {
	Line &line = mine(p), &other = theirs(p);
	if (p.turn >= (long)other.size() || !other[p.turn].first || !other[p.turn].first->begun) return;
	Work peer = other[p.turn].first;
	if (peer->done) return; // it was aborted and its memory may be freed: this one hangs until it is aborted too
	const Part *q = other[p.turn].second;
	const Part *from = p.kind == 'S' ? &p : q, *to = p.kind == 'S' ? q : &p;
	if (inMemory(w, p) && inMemory(peer, *q)) memcpy(to->to, from->from, p.count * width(p.type));
	line[p.turn] = other[p.turn] = {};
	end(w);
	end(peer);
}

static void beginMeeting(const Part &p) {
	Meeting &m = p.comm->world->meetings[p.turn];
	if (++m.begun < p.comm->world->ranks) return;
	for (const Work &w : m.issued)
		if (w->done) return; // it was aborted, as above
	bool good = true;
	for (size_t i = 0; i < m.part.size(); i++) good &= inMemory(m.issued[i], *m.part[i]);
	registeredAlike(m.part);
	if (good) compute(m.part);
	std::vector<Work> all = m.issued;
	p.comm->world->meetings.erase(p.turn);
	for (const Work &w : all) end(w);
}

// Countdown is the number of calls of the process that begin before the fault of an environment variable:
// PLANC_EMULATED_BREAK=40 lets 40 calls begin.
struct Countdown {
	long left;
	explicit Countdown(const char *variable) : left(-1) {
		const char *n = getenv(variable);
		if (n && *n) left = atol(n);
	}
	bool over() { return left >= 0 && left-- == 0; }
};
// breaks reports whether the network breaks now; stalls reports whether a call hangs without any library
// reporting it.
static bool breaks() {
	static Countdown n("PLANC_EMULATED_BREAK");
	return n.over();
}
static bool stalls() {
	static Countdown n("PLANC_EMULATED_HANG");
	return n.over();
}

void begin(const Work &w) {
	for (const Part &p : w->parts)
		if (!p.comm->live) return finish(w); // it was aborted
	if (breaks()) {
		w->parts[0].comm->error = SYSTEM;
		return; // it hangs until it is aborted
	}
	if (stalls()) return; // it hangs, and nobody is told
	w->open = w->parts.size() + 1; // one extra for this call, so that the work is done only after it
	for (Part &p : w->parts) {
		if (!p.comm->world->far.empty()) farBegin(w, p);
		else if (pairwise(p)) beginPair(w, p);
		else beginMeeting(Part(p));
	}
	end(w);
}

std::vector<Work> partners(const Work &w) {
	std::vector<Work> all;
	for (const Part &p : w->parts) {
		if (p.turn < 0) continue;
		if (pairwise(p)) {
			if (p.turn < (long)theirs(p).size() && theirs(p)[p.turn].first) all.push_back(theirs(p)[p.turn].first);
			continue;
		}
		auto m = p.comm->world->meetings.find(p.turn);
		if (m != p.comm->world->meetings.end())
			for (const Work &o : m->second.issued)
				if (o && o != w) all.push_back(o);
	}
	return all;
}

std::string missing(const Work &w) {
	std::string s;
	for (const Part &p : w->parts) {
		if (pairwise(p)) {
			if (p.turn >= (long)theirs(p).size()) s += " rank " + std::to_string(p.peer) + ", which has not called its part;";
			continue;
		}
		auto m = p.comm->world->meetings.find(p.turn);
		if (m == p.comm->world->meetings.end()) continue;
		for (size_t i = 0; i < m->second.issued.size(); i++)
			if (!m->second.issued[i]) s += " rank " + std::to_string(i) + ", which has not called it;";
	}
	return s.empty() ? "others, which wait themselves" : s;
}

// atFirstUse reports whether the call connects ranks: their first message, and the first collective of a kind unless
// NCCL_RUNTIME_CONNECT=0, as in NCCL 2.22 and later. Ranks of other processes connect when they join.
static bool atFirstUse(const Part &p) {
	const World *w = p.comm->world;
	if (pairwise(p)) return p.peer != p.comm->rank && w->far.empty() && !w->called.count({p.comm->rank, p.peer});
	const char *connects = getenv("NCCL_RUNTIME_CONNECT");
	return !(connects && !strcmp(connects, "0")) && !w->used.count({p.comm->rank, p.kind});
}

// connectsLate reports whether the call connects ranks after the device's first training step has begun. NCCL allocates
// memory for that, and may wait for work of the device that waits for a peer.
static bool connectsLate(const Part &p) {
	if (!atFirstUse(p) || !p.comm->context->stepping) return false;
	fprintf(stderr, "emulated GPU: device %d connects to other ranks in a training step, for %s\n", p.comm->context->device, text(p).c_str());
	return true;
}

// connect connects ranks at first use. At their first message, the host waits until the peers have called their parts,
// which is not possible in a capture.
static void connect(const std::vector<std::pair<Stream *, Part>> &calls) {
	std::vector<Part> first;
	for (auto &c : calls) {
		const Part &p = c.second;
		if (!atFirstUse(p)) continue;
		if (!pairwise(p)) {
			p.comm->world->used.insert({p.comm->rank, p.kind});
			continue;
		}
		p.comm->world->called.insert({p.comm->rank, p.peer});
		if (capturing) die("%s: rank %d exchanges its first message with rank %d in a capture", text(p).c_str(), p.comm->rank, p.peer);
		first.push_back(p);
	}
	for (const Part &p : first)
		await([&]() -> std::string {
			if (p.comm->error || p.comm->world->called.count({p.peer, p.comm->rank})) return "";
			return "rank " + std::to_string(p.comm->rank) + " connects to rank " + std::to_string(p.peer) + ", which has not called its part";
		});
}

// enqueue puts parts on their streams: the parts of a group on one stream are one piece of work.
static int enqueue(const std::vector<std::pair<Stream *, Part>> &calls) {
	for (auto &c : calls)
		if (connectsLate(c.second)) return INVALID_USAGE;
	std::vector<Stream *> streams;
	for (auto &c : calls)
		if (std::find(streams.begin(), streams.end(), c.first) == streams.end()) streams.push_back(c.first);
	for (Stream *s : streams) {
		std::vector<Part> parts;
		std::string name = "stream " + std::to_string(s->id) + ":";
		for (auto &c : calls)
			if (c.first == s) parts.push_back(c.second), name += " " + text(c.second);
		put(s, name, nullptr, parts);
	}
	connect(calls);
	return 0;
}

// call enqueues a call, or keeps it until the group ends.
static int call(Part p, cudaStream_t h) {
	Stream *s = is<Stream>(h, STREAM);
	if (!is<ncclComm>(p.comm, COMM) || !s || !width(p.type) || (p.op != 0 && p.op != 2 && p.op != 4)) return INVALID_ARGUMENT;
	if (s->context != p.comm->context) die("%s is enqueued on a stream of device %d, but its communicator is of device %d", text(p).c_str(), s->context->device, p.comm->context->device);
	if (p.comm->error) return p.comm->error;
	if (pairwise(p) && (p.peer < 0 || p.peer >= p.comm->world->ranks)) return INVALID_ARGUMENT;
	if (depth) group.push_back({s, p});
	else return enqueue({{s, p}});
	return 0;
}
NCCL(ncclGroupStart, (void), { depth++; })
NCCL(ncclGroupEnd, (void), {
	if (!depth) return INVALID_USAGE;
	if (--depth == 0) {
		r = enqueue(group);
		group.clear();
	}
})
#define PART(kind, from, to, op, peer) call(Part{kind, (const char *)(from), (char *)(to), n, t, op, peer, c}, s)
NCCL(ncclAllReduce, (const void *from, void *to, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t s), { r = PART('r', from, to, op, 0); })
NCCL(ncclReduceScatter, (const void *from, void *to, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t s), { r = PART('s', from, to, op, 0); })
NCCL(ncclAllGather, (const void *from, void *to, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s), { r = PART('g', from, to, 0, 0); })
NCCL(ncclBroadcast, (const void *from, void *to, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t s), { r = PART('b', from, to, 0, root); })
NCCL(ncclSend, (const void *from, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s), { r = PART('S', from, NULL, 0, peer); })
NCCL(ncclRecv, (void *to, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s), { r = PART('R', NULL, to, 0, peer); })
