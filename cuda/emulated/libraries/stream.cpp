// Driver calls that enqueue work and order it: copies, events, graphs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "call.h"

// put enqueues work behind everything on a stream, or makes it a node of the graph that the stream is
// captured into.
CUresult put(Stream *s, const std::string &text, std::function<std::string()> run, const std::vector<Part> &parts) {
	s->afterKernel = false; // launch corrects it
	if (s->graph) {
		Node n = {text, std::move(run), {s->at.begin(), s->at.end()}, parts, s->context, s->priority};
		s->graph->nodes.push_back(n);
		s->at = {(int)s->graph->nodes.size() - 1};
		return 0;
	}
	s->last = append(s->context, text, std::move(run), parts, {s->last});
	return 0;
}

static std::string name(Stream *s) { return "stream " + std::to_string(s->id); }

// copy enqueues a copy. Both addresses are checked now, and again when it runs.
static int copy(Stream *s, const char *what, uint64_t to, Kind kt, uint64_t from, Kind kf, size_t n) {
	Allocation *a = holds(to, n), *b = holds(from, n);
	if (!a || a->kind != kt || !b || b->kind != kf) return INVALID_VALUE;
	Context *c = s->context;
	return put(s, name(s) + ": " + what + " of " + std::to_string(n) + " bytes", [=]() -> std::string {
		std::string why = touches(c, to, n, "the target");
		if (why.empty()) why = touches(c, from, n, "the source");
		if (why.empty()) memmove((void *)to, (void *)from, n);
		return why;
	});
}
CALL(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t n, CUstream t), 1, { NEED(Stream, s, t, STREAM) r = copy(s, "upload", to, MEMORY, (uint64_t)from, PINNED, n); })
CALL(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t n, CUstream t), 1, { NEED(Stream, s, t, STREAM) r = copy(s, "download", (uint64_t)to, PINNED, from, MEMORY, n); })
// Copies that return when they are done. Host memory may be pageable. Streams that do not block do not order them.
CALL(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t n), 1, {
	Allocation *a = holds(to, n);
	if (capturing) r = spoil();
	else if (!a || a->kind != MEMORY) r = INVALID_VALUE;
	else memcpy((void *)to, from, n);
})
CALL(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t n), 1, {
	Allocation *a = holds(from, n);
	if (capturing) r = spoil();
	else if (!a || a->kind != MEMORY) r = INVALID_VALUE;
	else memcpy(to, (void *)from, n);
})
CALL(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream t), 1, {
	NEED(Stream, s, t, STREAM)
	r = to < from + n && from < to + n && n ? (int)INVALID_VALUE : copy(s, "copy", to, MEMORY, from, MEMORY, n);
})
CALL(cuMemsetD8Async, (CUdeviceptr to, unsigned char v, size_t n, CUstream t), 1, {
	NEED(Stream, s, t, STREAM)
	Allocation *a = holds(to, n);
	if (!a || a->kind != MEMORY) return INVALID_VALUE;
	Context *c = s->context;
	r = put(s, name(s) + ": memset of " + std::to_string(n) + " bytes", [=]() -> std::string {
		std::string why = touches(c, to, n, "the target");
		if (why.empty()) memset((void *)to, v, n);
		return why;
	});
})

CALL(cuStreamCreateWithPriority, (CUstream *to, unsigned flags, int priority), 1, {
	if (flags != planc_stream_non_blocking) die("a stream that waits for the null stream is not emulated");
	Stream *s = make<Stream>(STREAM);
	s->priority = priority;
	*to = (CUstream)(Object *)s;
})
CALL(cuStreamDestroy_v2, (CUstream t), 1, { NEED(Stream, s, t, STREAM) s->live = false; })
CALL(cuStreamSynchronize, (CUstream t), 1, {
	NEED(Stream, s, t, STREAM)
	if (s->graph) { s->graph->invalid = CAPTURE_INVALIDATED; return CAPTURE_UNSUPPORTED; }
	if (capturing) return spoil();
	drive({s->last});
	r = current->lost;
})
CALL(cuStreamQuery, (CUstream t), 1, {
	NEED(Stream, s, t, STREAM)
	if (s->graph) { s->graph->invalid = CAPTURE_INVALIDATED; return CAPTURE_UNSUPPORTED; }
	progress(s->last);
	r = current->lost ? current->lost : s->last && !s->last->done ? (int)NOT_READY : 0;
})
CALL(cuStreamWaitEvent, (CUstream t, CUevent h, unsigned), 1, {
	NEED(Stream, s, t, STREAM)
	NEED(Event, e, h, EVENT)
	s->afterKernel = false;
	if (e->graph) { // a captured event draws the stream into its capture
		if (s->graph && s->graph != e->graph) return CAPTURE_ISOLATION;
		s->graph = e->graph;
		s->at.insert(e->at.begin(), e->at.end());
		return 0;
	}
	if (s->graph) {
		if (!e->mark || e->mark->done) return 0; // the recorded work finished long ago: the driver allows it
		s->graph->invalid = CAPTURE_ISOLATION;
		return CAPTURE_ISOLATION;
	}
	if (e->mark && !e->mark->done) s->last = append(s->context, name(s) + ": wait for event " + std::to_string(e->id), nullptr, {}, {s->last, e->mark});
})

CALL(cuEventCreate, (CUevent *to, unsigned), 1, { *to = (CUevent)(Object *)make<Event>(EVENT); })
CALL(cuEventDestroy_v2, (CUevent h), 1, { NEED(Event, e, h, EVENT) e->live = false; })
CALL(cuEventRecord, (CUevent h, CUstream t), 1, {
	NEED(Event, e, h, EVENT)
	NEED(Stream, s, t, STREAM)
	if (e->context != s->context) return INVALID_HANDLE;
	e->graph = s->graph;
	e->at = s->at;
	e->mark = s->graph ? nullptr : s->last;
	e->recorded = true;
	s->afterKernel = false;
})
CALL(cuEventSynchronize, (CUevent h), 1, {
	NEED(Event, e, h, EVENT)
	if (e->graph) return CAPTURED_EVENT;
	if (capturing) return spoil();
	drive({e->mark});
	r = current->lost;
})

// elapsed returns one of the digits of PLANC_EMULATED_TIMES: that with the number of the thread's last GEMM, as the
// digits repeat. It returns 1 without them. There is no clock, so that runs are reproducible.
thread_local int timedGEMM = 0;
static float elapsed() {
	const char *digits = getenv("PLANC_EMULATED_TIMES");
	size_t n = digits ? strlen(digits) : 0;
	return n ? digits[timedGEMM % n] - '0' : 1;
}
CALL(cuEventElapsedTime, (float *ms, CUevent a, CUevent b), 1, {
	NEED(Event, from, a, EVENT)
	NEED(Event, to, b, EVENT)
	if (!from->recorded || !to->recorded) return INVALID_HANDLE;
	if ((from->mark && !from->mark->done) || (to->mark && !to->mark->done)) return NOT_READY;
	*ms = elapsed();
})

CALL(cuStreamBeginCapture_v2, (CUstream t, CUstreamCaptureMode), 1, {
	NEED(Stream, s, t, STREAM)
	if (s->graph) return CAPTURE_UNSUPPORTED;
	capturing = s->graph = make<Graph>(GRAPH);
	s->origin = true;
	s->afterKernel = false;
	s->at.clear();
})

// before is the set of all nodes from which a node of the given set can be reached.
static std::set<int> before(const Graph *g, const std::set<int> &from) {
	std::set<int> seen;
	std::vector<int> stack(from.begin(), from.end());
	while (!stack.empty()) {
		int n = stack.back();
		stack.pop_back();
		if (!seen.insert(n).second) continue;
		stack.insert(stack.end(), g->nodes[n].needs.begin(), g->nodes[n].needs.end());
	}
	return seen;
}
void freeStreams(Graph *g);

CALL(cuStreamEndCapture, (CUstream t, CUgraph *to), 1, {
	NEED(Stream, s, t, STREAM)
	*to = NULL;
	if (!s->graph || !s->origin) return CAPTURE_UNMATCHED;
	Graph *g = s->graph;
	std::set<int> joined = before(g, s->at);
	if (!g->invalid && joined.size() != g->nodes.size()) {
		for (int i = 0; i < (int)g->nodes.size(); i++)
			if (!joined.count(i)) say("not joined: %s", g->nodes[i].text.c_str());
		g->invalid = CAPTURE_UNJOINED;
	}
	freeStreams(g);
	s->origin = s->afterKernel = false;
	capturing = NULL;
	r = g->invalid;
	if (r) g->live = false;
	else *to = (CUgraph)(Object *)g;
})
CALL(cuGraphInstantiateWithFlags, (CUgraphExec *to, CUgraph h, unsigned long long flags), 1, {
	NEED(Graph, g, h, GRAPH)
	Exec *x = make<Exec>(EXEC);
	x->graph = new Graph(*g);
	*to = (CUgraphExec)(Object *)x;
	size_t high = 0;
	for (const Node &n : g->nodes) high += n.priority < 0;
	say("graph of %zu nodes, %zu at high priority", g->nodes.size(), flags == planc_graph_node_priorities ? high : 0);
})
CALL(cuGraphLaunch, (CUgraphExec h, CUstream t), 1, {
	NEED(Exec, x, h, EXEC)
	NEED(Stream, s, t, STREAM)
	if (s->graph) die("a graph within a graph is not emulated");
	std::vector<Work> made;
	std::vector<Work> ends;
	for (Node &n : x->graph->nodes) {
		std::vector<Work> after = {s->last, x->last};
		for (int i : n.needs) after.push_back(made[i]);
		made.push_back(append(n.context, "graph: " + n.text, n.run, n.parts, after));
	}
	ends = made;
	ends.push_back(s->last);
	s->afterKernel = false;
	s->last = x->last = append(s->context, name(s) + ": end of a graph", nullptr, {}, ends);
})
CALL(cuGraphExecDestroy, (CUgraphExec h), 1, { NEED(Exec, x, h, EXEC) x->live = false; wake(); })
CALL(cuGraphDestroy, (CUgraph h), 1, { NEED(Graph, g, h, GRAPH) g->live = false; })

// Tensor maps describe tiles for instructions that are not emulated.
CALL(cuTensorMapEncodeTiled, (CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill), 1, { r = 801; })
