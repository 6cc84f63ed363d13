// What the fake libraries share: a log of calls, failures on demand, and objects that know whether they are
// alive.
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
	const char *path = getenv("PLANC_FAKE_LOG");
	FILE *f = path ? fopen(path, "a") : NULL;
	if (!f) return;
	va_list args;
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
	fputc('\n', f);
	fclose(f);
}

// told is the code that PLANC_FAKE_FAIL=NAME:CODE gives this call, or 0.
static int told(const char *name) {
	const char *fail = getenv("PLANC_FAKE_FAIL");
	size_t n = strlen(name);
	if (!fail || strncmp(fail, name, n) || fail[n] != ':') return 0;
	return atoi(fail + n + 1);
}

enum kind { CONTEXT, MODULE, FUNCTION, STREAM, EVENT, GRAPH, EXEC, MEMORY, PINNED, KINDS };
static const char *const kinds[] = {"context", "module", "function", "stream", "event", "graph", "exec", "memory", "pinned"};

struct object {
	enum kind kind;
	int id, live;
	struct object *of;    // of a function: its module; of an exec: its graph
	char *memory;         // of memory
	size_t bytes;
	char *text;           // of a module: its listing; of a function: its line
	struct object *graph; // the graph that a stream or an event is captured into
	struct object *last;  // of an event: the stream that recorded it
	int open;             // of a captured stream: it has work that the origin does not wait for
	struct op *ops;       // of a graph
	struct object *next;
};

static struct object *objects;
static int count[KINDS];

static struct object *make(enum kind kind) {
	struct object *o = calloc(1, sizeof *o);
	o->kind = kind;
	o->id = ++count[kind];
	o->live = 1;
	o->next = objects;
	return objects = o; // never freed: a closed handle can be told from an invalid one
}

// is reports whether a handle is a live object of a kind.
static int is(const void *handle, enum kind kind) {
	for (struct object *o = objects; o; o = o->next)
		if (o == handle) return o->live && o->kind == kind;
	return 0;
}

// inside reports whether a range of bytes lies in live memory of a kind.
static int inside(uint64_t p, size_t bytes, enum kind kind) {
	for (struct object *o = objects; o; o = o->next)
		if (o->live && o->kind == kind && p >= (uint64_t)o->memory && p + bytes <= (uint64_t)o->memory + o->bytes) return 1;
	return 0;
}

static int leaks(void) {
	int n = 0;
	for (struct object *o = objects; o; o = o->next)
		if (o->live && o->kind != FUNCTION && o->kind != CONTEXT) {
			say("leak %s %d", kinds[o->kind], o->id);
			n++;
		}
	return n;
}
