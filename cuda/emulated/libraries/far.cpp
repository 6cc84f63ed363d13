// Communicators between processes: PLANC_EMULATED_FAR names a directory that stands for the network. Once a
// rank's collective is at the head of its stream, the rank writes its contribution as a file there; a
// process completes the work of its ranks when all files are there. A message is a file that its receiver
// removes. Files appear atomically, by renaming.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "nccl_world.h"

std::string farFolder(const char *id) {
	const char *dir = getenv("PLANC_EMULATED_FAR");
	return dir && *dir ? std::string(dir) + "/" + id : "";
}

static std::string name(World *w, const char *what, long a, long b = -1, long c = -1) {
	std::string s = w->far + "/" + what + "." + std::to_string(a);
	if (b >= 0) s += "." + std::to_string(b);
	if (c >= 0) s += "." + std::to_string(c);
	return s;
}
static bool exists(const std::string &path) { return !access(path.c_str(), F_OK); }

// put writes a file that has two parts.
static void put(const std::string &path, const void *head, size_t headSize, const void *body, size_t size) {
	std::string tmp = path + ".tmp" + std::to_string(getpid());
	FILE *f = fopen(tmp.c_str(), "w");
	if (!f || fwrite(head, 1, headSize, f) != headSize || fwrite(body, 1, size, f) != size || fclose(f) || rename(tmp.c_str(), path.c_str())) die("%s cannot be written: %m", path.c_str());
}
static std::vector<char> get(const std::string &path) {
	std::vector<char> x;
	FILE *f = fopen(path.c_str(), "r");
	if (!f) die("%s cannot be read: %m", path.c_str());
	char part[1 << 14];
	for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) x.insert(x.end(), part, part + n);
	fclose(f);
	return x;
}

void farJoin(World *w, int rank) {
	if (mkdir(w->far.c_str(), 0777) && errno != EEXIST) die("%s cannot be created: %m", w->far.c_str());
	put(name(w, "joined", rank), "", 0, "", 0);
}
bool farJoined(World *w) {
	if (w->far.empty()) return w->joined == w->ranks;
	for (; w->joined < w->ranks; w->joined++) // counts the ranks that are known to have joined
		if (!exists(name(w, "joined", w->joined))) return false;
	return true;
}

void farSplit(ncclComm *c) {
	int head[2] = {c->color, c->key};
	put(name(c->world, "split", c->world->parts, c->rank), head, sizeof head, "", 0);
}

void farParts(World *w) {
	struct Named { int color, key, rank; };
	std::vector<Named> all;
	for (int r = 0; r < w->ranks; r++) {
		std::string path = name(w, "split", w->parts, r);
		if (!exists(path)) return;
		std::vector<char> x = get(path);
		all.push_back({((int *)x.data())[0], ((int *)x.data())[1], r});
	}
	std::stable_sort(all.begin(), all.end(), [](const Named &a, const Named &b) { return a.color < b.color || (a.color == b.color && a.key < b.key); });
	Context *before = current;
	for (size_t from = 0, to; from < all.size(); from = to) {
		for (to = from; to < all.size() && all[to].color == all[from].color;) to++;
		World *p = nullptr;
		for (size_t i = from; i < to; i++) {
			ncclComm *c = w->comm[all[i].rank];
			if (!c) continue;
			if (all[from].color >= 0) {
				if (!p) p = create(to - from), p->far = name(w, "part", w->parts, all[from].color);
				current = c->context;
				*c->part = join(p, i - from);
			}
			c->part = nullptr;
		}
	}
	current = before;
	w->splits = 0;
	w->parts++;
}

void farAbort(World *w) { put(name(w, "aborted", 0), "", 0, "", 0); }
bool farAborted(World *w) { return exists(name(w, "aborted", 0)); }

// Head describes a rank's call, so that calls that differ are found.
struct Head { long kind, count, type, op, peer; };
static Head head(const Part &p) { return {p.kind, (long)p.count, p.type, p.op, p.peer}; }

// check ends the process if another rank's call does not belong to the same collective.
static void check(const Part &p, const std::vector<char> &theirs, int rank) {
	Head a = head(p), b;
	memcpy(&b, theirs.data(), sizeof b);
	bool same = pairwise(p) ? a.kind != b.kind : a.kind == b.kind && a.op == b.op && a.peer == b.peer;
	if (!same || a.count != b.count || a.type != b.type) die("ranks differ: %s, but rank %d of another process has %ld of type %ld in a call %c", text(p).c_str(), rank, b.count, b.type, (char)b.kind);
}

static size_t brings(const Part &p) { // in bytes
	size_t one = p.count * width(p.type);
	return p.kind == 's' ? one * p.comm->world->ranks : one;
}

// Wait is work that has begun and waits for other processes.
struct Wait { Work work; Part part; };
static std::vector<Wait> waits;

void farBegin(const Work &w, const Part &p) {
	World *o = p.comm->world;
	if (!inMemory(w, p)) return end(w);
	Head h = head(p);
	if (p.kind == 'S') put(name(o, "message", p.comm->rank, p.peer, p.turn), &h, sizeof h, p.from, brings(p));
	else if (p.kind != 'R') put(name(o, "turn", p.turn, p.comm->rank), &h, sizeof h, p.from, brings(p));
	waits.push_back({w, p});
}

// received receives a message if it has arrived.
static bool received(const Part &p) {
	std::string path = name(p.comm->world, "message", p.peer, p.comm->rank, p.turn);
	if (!exists(path)) return false;
	std::vector<char> x = get(path);
	check(p, x, p.peer);
	memcpy(p.to, x.data() + sizeof(Head), x.size() - sizeof(Head));
	unlink(path.c_str());
	return true;
}

// met does this rank's part of a collective if all ranks have contributed. When all ranks are in this group of
// collectives, all have left the groups before it; the collectives of one group complete in any order.
static bool met(const Part &p) {
	World *w = p.comm->world;
	for (int r = 0; r < w->ranks; r++)
		if (!exists(name(w, "turn", p.turn, r))) return false;
	std::vector<std::vector<char>> x;
	std::vector<char> sink;
	std::vector<Part> parts;
	for (int r = 0; r < w->ranks; r++) {
		x.push_back(get(name(w, "turn", p.turn, r)));
		check(p, x[r], r);
		parts.push_back(p);
		parts[r].from = x[r].data() + sizeof(Head);
		parts[r].to = nullptr;
	}
	parts[p.comm->rank].to = p.to;
	std::vector<const Part *> all;
	for (const Part &q : parts) all.push_back(&q);
	compute(all);
	for (long t = p.first - 1; t >= 0 && !unlink(name(w, "turn", t, p.comm->rank).c_str()); t--) {}
	return true;
}

// forget removes what issue has recorded of a part.
static void forget(const Part &p) {
	World *w = p.comm->world;
	if (p.kind == 'S') w->lines[{p.comm->rank, p.peer}].first[p.turn] = {};
	else if (p.kind == 'R') w->lines[{p.peer, p.comm->rank}].second[p.turn] = {};
	else {
		Meeting &m = w->meetings[p.turn];
		m.issued[p.comm->rank] = nullptr;
		if (std::none_of(m.issued.begin(), m.issued.end(), [](const Work &o) { return !!o; })) w->meetings.erase(p.turn);
	}
}

bool farWaits() { return !waits.empty(); }

bool farLook() {
	bool moved = false;
	for (size_t i = 0; i < waits.size();) {
		Wait w = waits[i];
		const Part &p = w.part;
		bool gone = w.work->done || !p.comm->live; // it was aborted
		bool over = !gone && (p.kind == 'S' ? !exists(name(p.comm->world, "message", p.comm->rank, p.peer, p.turn)) : p.kind == 'R' ? received(p) : met(p));
		if (!gone && !over) {
			i++;
			continue;
		}
		forget(p);
		waits.erase(waits.begin() + i);
		if (over) end(w.work);
		moved = true;
	}
	return moved;
}
