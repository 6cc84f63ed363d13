// What the emulated libraries share: objects behind handles, memory, and work that waits for other work.
// One mutex guards everything; a library call holds it for its whole duration, also while work runs, so
// that only one thing runs at a time.
#pragma once
#include <stdint.h>
#include <pthread.h>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

// The prototypes are C.
#define _Static_assert static_assert
#define _Alignas alignas
extern "C" {
#include "driver.h"
#include "blaslt.h"
#include "nccl.h"
}

// Error codes of the driver.
enum {
	INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
	ILLEGAL_ADDRESS = 700, LAUNCH_OUT_OF_RESOURCES = 701, LAUNCH_FAILED = 719, CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901, CAPTURE_UNMATCHED = 903, CAPTURE_UNJOINED = 904,
	CAPTURE_ISOLATION = 905, CAPTURED_EVENT = 907
};

enum Kind { CONTEXT, MODULE, FUNCTION, STREAM, EVENT, GRAPH, EXEC, MEMORY, PINNED, PRODUCT, COMM, ATTENTION, KINDS };

struct Op;
struct Part;
struct Graph;
struct Context;
typedef std::shared_ptr<Op> Work;

// An object is never freed, so that a closed handle can be told from an invalid one.
struct Object {
	Kind kind;
	int id;
	bool live = true;
	Context *context;
	virtual ~Object() {}
};

struct Context : Object {
	int device = 0, users = 0, lost = 0; // lost: the code that each call returns after work has failed
	bool stepping = false;              // its first training step has begun
	std::set<std::string> loaded;       // kernels of libraries whose code is loaded
	std::set<Context *> reach;          // contexts whose memory its kernels may use
	std::vector<Work> work;             // not yet done
};

// What the code of a module exports for each kernel; module.h has the same type.
struct Export {
	const char *name;
	void (*run)(void **);
	const uint32_t *sizes; // of each parameter, terminated by 0
	const bool *pointer;
};
typedef const char *(*Launcher)(void (*)(void **), void **, const uint32_t *grid, const uint32_t *block, uint32_t shared, uint32_t order);
typedef const char *(*EarlyLauncher)(void (*)(void **), void **, const bool *pointer, uint32_t count, const uint32_t *block);

struct Module : Object {
	void *library;
	const Export *kernels;
	Launcher launch;
	EarlyLauncher early;             // runs the beginning of a kernel that is launched early
	std::set<const Export *> loaded; // kernels whose code is loaded
	std::set<const Export *> begun;  // kernels whose beginning has run
};

struct Function : Object {
	Module *module;
	const Export *kernel;
	int shared = 48 << 10; // bytes that a launch may request
};

// A Node is work of a graph: a template of an Op.
struct Node {
	std::string text;
	std::function<std::string()> run; // returns an error, or ""
	std::vector<int> needs;           // preceding nodes
	std::vector<Part> parts;
	Context *context;
	int priority;
};

struct Graph : Object {
	std::vector<Node> nodes;
	int invalid = 0; // the code with which the capture ended
};

struct Exec : Object {
	Graph *graph;
	Work last; // the end of its last launch
};

struct Stream : Object {
	Work last;             // the last work enqueued
	Graph *graph = nullptr; // the graph that it is captured into
	std::set<int> at;       // the nodes that the next work waits for
	bool origin = false;
	bool afterKernel = false; // the last thing enqueued is a kernel of a module
	int priority = 0;
};

struct Event : Object {
	Work mark;
	bool recorded = false;
	Graph *graph = nullptr; // of a captured record
	std::set<int> at;
};

struct Allocation : Object {
	uint64_t begin;
	size_t bytes;
	char *whole; // with guard pages
	size_t size;
};

// A Part is one rank's part in a collective, a send or a receive.
struct Part {
	char kind; // r: all-reduce, s: reduce-scatter, g: all-gather, b: broadcast, S: send, R: receive
	const char *from;
	char *to;
	size_t count;
	int type, op, peer;
	struct ncclComm *comm;
	long turn = -1; // sequence number in the communicator, or of the pair of ranks
	long first = 0; // the turn of the first collective of the same group and communicator
};

// An Op is enqueued work.
struct Op {
	long id;
	std::string text;
	Context *context;
	std::function<std::string()> run;
	std::vector<Part> parts; // parts in NCCL calls: the op is done when all are
	int waits = 0;           // number of ops that it waits for
	int open = 0;            // parts that have begun and are not done
	bool begun = false, done = false;
	std::vector<Work> next;        // work that waits for it
	std::vector<std::weak_ptr<Op>> needs; // work that it waits for
};

extern pthread_mutex_t mutex;
extern thread_local Context *current;
extern thread_local Graph *capturing;
extern thread_local int timedGEMM; // number of the last GEMM, by which elapsed times are chosen

// objects
template <class T> T *make(Kind kind);
void keep(Object *o, Kind kind);
Object *living(const void *handle, Kind kind);
template <class T> T *make(Kind kind) {
	T *o = new T();
	keep(o, kind);
	return o;
}
template <class T> T *is(const void *handle, Kind kind) { return static_cast<T *>(living(handle, kind)); }
void leaks(Context *c);
bool launchable(const struct ncclComm *c); // whether a launchable graph contains work of the communicator
std::vector<Context *> &contexts();
extern const char *const kinds[KINDS];

// memory
Allocation *holds(uint64_t p, size_t bytes); // the live allocation that contains a range of bytes, or NULL
// why work of a context may not access a range, or ""
std::string touches(Context *c, uint64_t p, size_t bytes, const char *what);

// work
CUresult put(Stream *s, const std::string &text, std::function<std::string()> run, const std::vector<Part> &parts = {});
Work append(Context *c, const std::string &text, std::function<std::string()> run, const std::vector<Part> &parts, const std::vector<Work> &after);
void finish(const Work &w);           // marks work as done and releases the work that waits for it
void eager();                         // after each call: runs what the policy lets run
void drive(const std::vector<Work> &targets); // a host waits
void wake();                          // waiting hosts look again
void await(const std::function<std::string()> &why); // a host waits for other hosts until why returns ""
void progress(const Work &target);     // a host polls: one more piece of work runs
void fault(Context *c, int code, const std::string &why); // work has failed

// loadsLate loads a library's kernel at its first launch, and reports whether a training step has begun before
bool loadsLate(Context *c, const std::string &kernel);

// communication (nccl.cpp)
void begin(const Work &w);                               // a collective's work is at the head of its stream
std::vector<Work> partners(const Work &w);               // the work that it waits for, as far as it is enqueued
bool farWaits();                                         // whether work waits for other processes
// completes what has arrived from other processes; false if nothing has
bool farLook();
std::string missing(const Work &w);                      // the ranks that it waits for, as text
// numbers the parts; returns the previous work of the same communicators
std::vector<Work> issue(const Work &w);

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint32_t chance();

// Held holds the lock during a call.
struct Held {
	Held() { pthread_mutex_lock(&mutex); }
	~Held() { pthread_mutex_unlock(&mutex); }
};
