// When work runs. Work runs only when its stream, events, graphs and communicators allow it. Among the work
// that may run, the policy PLANC_EMULATED_ORDER chooses: "early" (each as soon as it may run; the default),
// "late" (nothing before a host waits for it, then the last enqueued first), or a number, the seed of a
// random choice of what runs and when.
#include "gpu.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long issued, moves;        // ops created; changes since the start
static std::map<long, Work> free_; // work that may run, by number

enum { EARLY, LATE, RANDOM };
static int policy() {
	static const int p = [] {
		const char *order = getenv("PLANC_EMULATED_ORDER");
		return !order || !*order || !strcmp(order, "early") ? EARLY : !strcmp(order, "late") ? LATE : RANDOM;
	}();
	return p;
}

uint32_t chance() {
	static uint64_t seed = [] {
		const char *order = getenv("PLANC_EMULATED_ORDER");
		return order ? strtoull(order, NULL, 10) + 1 : 1;
	}();
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 33;
}

void say(const char *format, ...) {
	static FILE *log = [] {
		const char *path = getenv("PLANC_EMULATED_LOG");
		return path && *path ? fopen(path, "a") : (FILE *)NULL;
	}();
	if (!log) return;
	va_list args;
	va_start(args, format);
	vfprintf(log, format, args);
	va_end(args);
	fputc('\n', log);
	fflush(log);
}

void die(const char *format, ...) {
	va_list args;
	va_start(args, format);
	fprintf(stderr, "emulated GPU: ");
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	fflush(stderr);
	_exit(86);
}

void fault(Context *c, int code, const std::string &why) {
	fprintf(stderr, "emulated GPU: device %d: %s\n", c->device, why.c_str());
	say("fault: %s", why.c_str());
	if (!c->lost) c->lost = code;
}

static void moved() {
	moves++;
	pthread_cond_broadcast(&changed);
}

Work append(Context *c, const std::string &text, std::function<std::string()> run, const std::vector<Part> &parts, const std::vector<Work> &after) {
	Work w = std::make_shared<Op>();
	w->id = ++issued;
	w->text = text;
	w->context = c;
	w->run = std::move(run);
	w->parts = parts;
	std::vector<Work> before = after;
	if (!parts.empty())
		for (Work &b : issue(w)) before.push_back(b);
	for (const Work &b : before)
		if (b && !b->done) {
			w->waits++;
			b->next.push_back(w);
			w->needs.push_back(b);
		}
	c->work.push_back(w);
	if (!w->waits) free_[w->id] = w;
	moved();
	return w;
}

void finish(const Work &w) {
	w->done = true;
	for (const Work &n : w->next)
		if (!--n->waits) free_[n->id] = n;
	w->next.clear();
	w->needs.clear();
	w->run = nullptr;
	auto &all = w->context->work;
	all.erase(std::find(all.begin(), all.end(), w));
	moved();
}

void wake() { pthread_cond_broadcast(&changed); }

// step runs work that may run. A collective only begins: it is done when its ranks have met.
static void step(long id) {
	Work w = free_[id];
	free_.erase(id);
	moves++;
	if (!w->parts.empty()) {
		w->begun = true;
		begin(w);
		return;
	}
	if (w->run && !w->context->lost) {
		say("device %d runs %s", w->context->device, w->text.c_str());
		std::string why = w->run();
		if (!why.empty()) fault(w->context, LAUNCH_FAILED, w->text + ": " + why);
	}
	finish(w);
}

void eager() {
	if (farWaits()) farLook();
	if (policy() == EARLY)
		while (!free_.empty()) step(free_.begin()->first);
	if (policy() == RANDOM)
		for (int n = chance() % 4; n > 0 && !free_.empty(); n--) step(std::next(free_.begin(), chance() % free_.size())->first);
}

// wanted is the work that must run before all targets can be done, as far as it is enqueued.
static std::set<long> wanted(const std::vector<Work> &targets) {
	std::set<long> seen;
	std::vector<Work> stack = targets;
	while (!stack.empty()) {
		Work w = stack.back();
		stack.pop_back();
		if (!w || w->done || !seen.insert(w->id).second) continue;
		for (auto &n : w->needs)
			if (Work b = n.lock()) stack.push_back(b);
		for (Work &p : partners(w)) stack.push_back(p);
	}
	return seen;
}

// all is the unfinished work of all devices.
static std::vector<Work> all() {
	std::set<Work> found;
	for (auto &f : free_) found.insert(f.second);
	for (Context *c : contexts()) found.insert(c->work.begin(), c->work.end());
	return {found.begin(), found.end()};
}

// circle finds work that waits for itself by way of other ranks.
static std::string circle() {
	std::map<Op *, int> color;
	std::vector<Work> path;
	std::string found;
	std::function<bool(const Work &)> visit = [&](const Work &w) {
		if (w->done || color[w.get()] == 2) return false;
		if (color[w.get()] == 1) {
			bool in = false;
			for (const Work &p : path) {
				in |= p == w;
				if (in) found += "\n\tdevice " + std::to_string(p->context->device) + ": " + p->text + " waits for";
			}
			found += "\n\tdevice " + std::to_string(w->context->device) + ": " + w->text;
			return true;
		}
		color[w.get()] = 1;
		path.push_back(w);
		for (auto &n : w->needs)
			if (Work b = n.lock())
				if (visit(b)) return true;
		if (w->begun)
			for (Work &p : partners(w))
				if (!p->begun && visit(p)) return true;
		path.pop_back();
		color[w.get()] = 2;
		return false;
	};
	for (const Work &w : all())
		if (visit(w)) return found;
	return "";
}

static void report(const char *why) {
	std::string text;
	for (const Work &w : all())
		if (!w->waits) text += "\n\tdevice " + std::to_string(w->context->device) + ": " + w->text + (w->begun ? " waits for " + missing(w) : " could run");
	die("%s%s", why, text.c_str());
}

static double now() {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

// patience is how long nothing may move before a deadlock is reported.
static double patience() {
	const char *text = getenv("PLANC_EMULATED_PATIENCE");
	return text && *text ? atof(text) : 60;
}

// pick is the work that a waiting host runs next, or 0. want is what wanted returned before.
static long pick(const std::vector<Work> &targets, std::set<long> &want) {
	if (free_.empty()) return 0;
	if (policy() == EARLY) return free_.begin()->first;
	if (policy() == RANDOM) return std::next(free_.begin(), chance() % free_.size())->first;
	for (int again = 0; again < 2; again++) {
		for (auto f = free_.rbegin(); f != free_.rend(); ++f)
			if (want.count(f->first)) return f->first;
		if (!again) want = wanted(targets);
	}
	return 0;
}

static void standStill(double since) {
	std::string found = circle();
	if (!found.empty()) die("a deadlock: ranks wait for each other in different orders:%s", found.c_str());
	if (now() - since > patience()) report("no work makes progress:");
}

// nap waits a little for another host to change something.
static void nap() {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += farWaits() ? 200000 : 200000000; // other processes do not wake this one
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&changed, &mutex, &t);
}

void await(const std::function<std::string()> &why) {
	double since = now();
	for (std::string text; !(text = why()).empty(); nap())
		if (now() - since > patience()) die("%s", text.c_str());
}

void drive(const std::vector<Work> &targets) {
	auto over = [&] {
		for (const Work &w : targets)
			if (w && !w->done) return false;
		return true;
	};
	std::set<long> want;
	long seen = -1;
	double since = now();
	while (!over()) {
		if (farWaits() && farLook()) continue;
		if (long id = pick(targets, want)) {
			step(id);
			continue;
		}
		if (seen != moves) {
			seen = moves;
			since = now();
		} else standStill(since);
		nap();
	}
}

void progress(const Work &target) {
	if (farWaits()) farLook();
	std::set<long> want;
	if (target && !target->done)
		if (long id = pick({target}, want)) step(id);
}
