// cuDNN: graphs of operations, executed on the host one operation at a time, in f32. Of the two plans that
// the heuristic returns, the first is marked as nondeterministic and is not executed.
#include <math.h>
#include <string.h>
#include "gpu.h"
extern "C" {
#include "cudnn.h"
}

#define PROTOTYPE(needed, result, name, params, args) extern "C" result name params;
PLANC_DNN(PROTOTYPE)

enum { NOT_INITIALIZED = 1001, BAD_PARAM = 2000, NOT_SUPPORTED = 3000, INTERNAL = 4000, EXECUTION_FAILED = 5000 };

struct cudnnContext : Object { Stream *stream = nullptr; };

// Descriptor holds the attributes that were set: numbers of up to 8 bytes each, including pointers.
struct Descriptor {
	int kind, way = 0; // way: index among the heuristic's results
	bool final = false;
	std::map<int, std::vector<uint64_t>> has;
	uint64_t one(int what) const { auto i = has.find(what); return i == has.end() || i->second.empty() ? 0 : i->second[0]; }
	const Descriptor *to(int what) const { return (const Descriptor *)one(what); }
};

static thread_local std::string why;
static int no(int code, const char *text) { why = text; return code; }

#define DNN(name, params, ...)            \
	extern "C" cudnnStatus_t name params { \
		Held held;                        \
		int r = 0;                        \
		__VA_ARGS__                       \
		eager();                          \
		return r;                         \
	}

size_t cudnnGetVersion(void) { return 92600; }
const char *cudnnGetErrorString(cudnnStatus_t s) { return s == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : s == BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM" : s == INTERNAL ? "CUDNN_STATUS_INTERNAL_ERROR" : s == EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED" : "CUDNN_STATUS_NOT_INITIALIZED"; }
void cudnnGetLastErrorString(char *to, size_t n) {
	if (n) to[std::min(why.copy(to, n - 1), n - 1)] = 0;
}

DNN(cudnnCreate, (cudnnHandle_t *h), { if (!current) return NOT_INITIALIZED; *h = make<cudnnContext>(ATTENTION); })
DNN(cudnnDestroy, (cudnnHandle_t h), { if (!is<cudnnContext>(h, ATTENTION)) return NOT_INITIALIZED; h->live = false; })
DNN(cudnnSetStream, (cudnnHandle_t h, cudaStream_t t), {
	Stream *s = is<Stream>(t, STREAM);
	if (!is<cudnnContext>(h, ATTENTION) || !s || s->context != h->context) return no(BAD_PARAM, "the stream is of another context");
	h->stream = s;
})
DNN(cudnnBackendCreateDescriptor, (cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t *d), {
	Descriptor *x = new Descriptor();
	x->kind = kind;
	*d = x;
})
DNN(cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t d), { delete (Descriptor *)d; })

// width is the size in bytes of a value of an attribute type.
static size_t width(int type) {
	switch (type) {
	case planc_dnn_of_flag: case planc_dnn_of_char: return 1;
	case planc_dnn_of_handle: case planc_dnn_of_int64: case planc_dnn_of_pointer: case planc_dnn_of_descriptor: return 8;
	}
	return 4;
}
DNN(cudnnBackendSetAttribute, (cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type, int64_t n, const void *values), {
	Descriptor *x = (Descriptor *)d;
	if (x->final) return no(BAD_PARAM, "the descriptor is finished");
	std::vector<uint64_t> v(n);
	for (int64_t i = 0; i < n; i++) memcpy(&v[i], (const char *)values + i * width(type), width(type));
	if (type == planc_dnn_of_descriptor)
		for (uint64_t y : v)
			if (!((Descriptor *)y)->final) return no(BAD_PARAM, "an attribute is a descriptor that is not finished");
	x->has[what] = v;
})

// volume is the number of elements of a tensor.
static int64_t volume(const Descriptor *t) {
	int64_t n = 1;
	for (uint64_t d : t->has.at(planc_dnn_tensor_dims)) n *= d;
	return n;
}
static const Descriptor *graphOf(const Descriptor *plan) { return plan->to(planc_dnn_plan_config)->to(-1); }
static int64_t products(const Descriptor *graph, const Descriptor **first) {
	int64_t n = 0;
	for (uint64_t o : graph->has.at(planc_dnn_graph_ops))
		if (((Descriptor *)o)->kind == planc_dnn_op_matmul && n++ == 0) *first = (Descriptor *)o;
	return n;
}
// needs is the workspace of a plan: for a gradient, the 16-bit scores.
static int64_t needs(const Descriptor *plan) {
	const Descriptor *first = NULL;
	return products(graphOf(plan), &first) == 5 ? 2 * volume(first->to(planc_dnn_op_matmul_c)) : 256;
}
DNN(cudnnBackendFinalize, (cudnnBackendDescriptor_t d), {
	Descriptor *x = (Descriptor *)d;
	if (x->kind == planc_dnn_plan && capturing) return no(INTERNAL, "code is loaded while a stream is captured");
	if (x->kind == planc_dnn_heuristic) {
		const Descriptor *first = NULL;
		int64_t n = products(x->to(planc_dnn_heuristic_graph), &first);
		if (n != 2 && n != 5) return no(NOT_SUPPORTED, "the graph is not attention");
	}
	x->final = true;
})
DNN(cudnnBackendGetAttribute, (cudnnBackendDescriptor_t const d, cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t, int64_t room, int64_t *n, void *values), {
	Descriptor *x = (Descriptor *)d;
	if (x->kind == planc_dnn_heuristic && what == planc_dnn_heuristic_results) {
		*n = 2;
		for (int64_t i = 0; i < std::min<int64_t>(room, 2); i++) {
			Descriptor *c = ((Descriptor **)values)[i];
			c->way = i, c->final = true;
			c->has[-1] = {x->one(planc_dnn_heuristic_graph)};
		}
	} else if (x->kind == planc_dnn_config && what == planc_dnn_config_engine) {
		Descriptor *e = *(Descriptor **)values;
		*n = 1, e->way = x->way, e->final = true;
	} else if (x->kind == planc_dnn_engine && what == planc_dnn_engine_notes && room >= 2) {
		*n = x->way ? 1 : 2;
		((int *)values)[0] = 0, ((int *)values)[1] = planc_dnn_nondeterministic;
	} else if (x->kind == planc_dnn_plan && what == planc_dnn_plan_workspace) {
		*n = 1, *(int64_t *)values = needs(x);
	} else return no(BAD_PARAM, "no such attribute");
})

// Tensor is a tensor of a graph that runs. Tensors inside the graph are stored densely.
struct Tensor {
	int type;
	int64_t uid;
	std::vector<int64_t> dims, strides;
	bool within, constant;
	char *at = NULL;
	std::vector<float> v;
	int64_t size() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
	int64_t place(int64_t i) const { // offset of the i-th element
		int64_t at = 0;
		for (int k = 3; k >= 0; k--) at += i % dims[k] * strides[k], i /= dims[k];
		return at;
	}
	size_t elem() const { return type == planc_dnn_f32 || type == planc_dnn_i32 ? 4 : 2; }
	size_t extent() const { return (size() ? place(size() - 1) + 1 : 0) * elem(); }
};
static float rounded(float x, int type) {
	if (type == planc_dnn_f16) return (float)(_Float16)x;
	if (type != planc_dnn_bf16 || x != x) return x;
	uint32_t b;
	memcpy(&b, &x, 4);
	b = (b + 0x7fff + (b >> 16 & 1)) & ~0xffffu;
	memcpy(&x, &b, 4);
	return x;
}
static float get(const Tensor &t, int64_t at) {
	if (t.type == planc_dnn_f32) return ((const float *)t.at)[at];
	if (t.type == planc_dnn_f16) return (float)((const _Float16 *)t.at)[at];
	uint32_t w = (uint32_t)((const uint16_t *)t.at)[at] << 16;
	float x;
	memcpy(&x, &w, 4);
	return x;
}
static void put(const Tensor &t, int64_t at, float x) {
	if (t.type == planc_dnn_f32) ((float *)t.at)[at] = x;
	if (t.type == planc_dnn_f16) ((_Float16 *)t.at)[at] = (_Float16)x;
	if (t.type != planc_dnn_bf16) return;
	float y = rounded(x, t.type);
	uint32_t b;
	memcpy(&b, &y, 4);
	((uint16_t *)t.at)[at] = b >> 16;
}

// Operation is an operation on tensors of the run, which it names by number; -1 means none.
struct Operation { int kind, f, axis, x, b, t, y; };

struct Run {
	std::vector<Tensor> tensors;
	std::vector<Operation> ops;
	char *workspace;
	int64_t scratch;
	int number(const Descriptor *d, const std::map<int64_t, char *> &at) {
		if (!d) return -1;
		int64_t uid = d->one(planc_dnn_tensor_uid);
		for (size_t i = 0; i < tensors.size(); i++)
			if (tensors[i].uid == uid) return i;
		Tensor t;
		t.type = d->one(planc_dnn_tensor_type), t.uid = uid;
		for (uint64_t x : d->has.at(planc_dnn_tensor_dims)) t.dims.push_back(x);
		for (uint64_t x : d->has.at(planc_dnn_tensor_strides)) t.strides.push_back(x);
		t.within = d->one(planc_dnn_tensor_virtual), t.constant = d->one(planc_dnn_tensor_value);
		if (!t.within) t.at = at.count(uid) ? at.at(uid) : NULL;
		if (t.constant && t.at) t.v = {*(float *)t.at}; // read now, as a launch does
		tensors.push_back(t);
		return tensors.size() - 1;
	}
	void read(int i) {
		Tensor &t = tensors[i];
		if (t.within || t.constant) return;
		t.v.resize(t.size());
		for (int64_t k = 0; k < t.size(); k++) t.v[k] = get(t, t.place(k));
	}
	// of is the element of x where y has its i-th element: x is broadcast along dimensions in which it has size
	// 1.
	float of(const Tensor &x, const Tensor &y, int64_t i) const {
		int64_t at = 0, step = 1;
		for (int k = 3; k >= 0; k--) {
			if (x.dims[k] > 1) at += i % y.dims[k] * step;
			i /= y.dims[k], step *= x.dims[k];
		}
		return x.v[at];
	}
	void pointwise(const Operation &o, Tensor &y) {
		for (int64_t i = 0; i < y.size(); i++) {
			float x = of(tensors[o.x], y, i), b = o.b < 0 ? 0 : of(tensors[o.b], y, i);
			switch (o.f) {
			case planc_dnn_add: x += b; break;
			case planc_dnn_sub: x -= b; break;
			case planc_dnn_mul: x *= b; break;
			case planc_dnn_div: x /= b; break;
			case planc_dnn_exp: x = expf(x); break;
			case planc_dnn_log: x = logf(x); break;
			case planc_dnn_ge: x = x >= b; break;
			case planc_dnn_gt: x = x > b; break;
			case planc_dnn_select: x = of(tensors[o.t], y, i) != 0 ? x : b; break;
			case planc_dnn_index: {
				int64_t step = 1;
				for (int k = 3; k > o.axis; k--) step *= y.dims[k];
				x = i / step % y.dims[o.axis];
			}
			}
			y.v[i] = x;
		}
	}
	void product(const Operation &o, Tensor &y) {
		const Tensor &a = tensors[o.x], &b = tensors[o.b];
		int64_t n = y.dims[2], m = y.dims[3], depth = a.dims[3];
		for (int64_t z = 0; z < y.dims[0]; z++)
			for (int64_t h = 0; h < y.dims[1]; h++) {
				const float *pa = &a.v[(z * a.dims[1] + h / (y.dims[1] / a.dims[1])) * n * depth], *pb = &b.v[(z * b.dims[1] + h / (y.dims[1] / b.dims[1])) * depth * m];
				float *py = &y.v[(z * y.dims[1] + h) * n * m];
				for (int64_t i = 0; i < n; i++)
					for (int64_t k = 0; k < depth; k++)
						for (int64_t j = 0; j < m; j++) py[i * m + j] += pa[i * depth + k] * pb[k * m + j];
			}
	}
	void reduction(const Operation &o, Tensor &y) {
		const Tensor &x = tensors[o.x];
		if (o.f == planc_dnn_max) std::fill(y.v.begin(), y.v.end(), -INFINITY);
		for (int64_t i = 0; i < x.size(); i++) {
			int64_t rest = i, at = 0, step = 1;
			for (int k = 3; k >= 0; k--) {
				// attention heads that share one key/value head
				int64_t q = rest % x.dims[k] / (x.dims[k] / y.dims[k]);
				at += q * step, rest /= x.dims[k], step *= y.dims[k];
			}
			y.v[at] = o.f == planc_dnn_max ? std::max(y.v[at], x.v[i]) : y.v[at] + x.v[i];
		}
	}
	void turn(const Operation &o, Tensor &y) {
		const Tensor &x = tensors[o.x];
		int64_t rows = x.dims[2], cols = x.dims[3];
		for (int64_t i = 0; i < x.size(); i++) y.v[i / (rows * cols) * rows * cols + i % cols * rows + i / cols % rows] = x.v[i];
	}
	std::string execute(Context *c) {
		for (Tensor &t : tensors) {
			std::string why = t.within || t.constant ? "" : touches(c, (uint64_t)t.at, t.extent(), ("tensor " + std::to_string(t.uid)).c_str());
			if (!why.empty()) return why;
		}
		std::string why = touches(c, (uint64_t)workspace, scratch, "the workspace");
		if (!why.empty()) return why;
		memset(workspace, 0xff, scratch); // so that anyone else who keeps something in the workspace notices
		for (const Operation &o : ops) {
			for (int i : {o.x, o.b, o.t})
				if (i >= 0) read(i);
			Tensor &y = tensors[o.y];
			y.v.assign(y.size(), 0);
			if (o.kind == planc_dnn_op_matmul) product(o, y);
			else if (o.kind == planc_dnn_op_reduction) reduction(o, y);
			else if (o.kind == planc_dnn_op_reshape) turn(o, y);
			else pointwise(o, y);
			for (int64_t i = 0; i < y.size(); i++) {
				if (y.within) y.v[i] = rounded(y.v[i], y.type);
				else ::put(y, y.place(i), y.v[i]);
			}
		}
		return "";
	}
};

// add adds an operation of the graph to a run.
static bool add(Run &run, const Descriptor *d, const std::map<int64_t, char *> &at) {
	Operation o = {d->kind, 0, 0, -1, -1, -1, -1};
	auto link = [&](int what) { return run.number(d->to(what), at); };
	switch (d->kind) {
	case planc_dnn_op_matmul: o.x = link(planc_dnn_op_matmul_a), o.b = link(planc_dnn_op_matmul_b), o.y = link(planc_dnn_op_matmul_c); break;
	case planc_dnn_op_reduction:
		o.f = d->to(planc_dnn_op_reduction_desc)->one(planc_dnn_reduction_kind), o.x = link(planc_dnn_op_reduction_x), o.y = link(planc_dnn_op_reduction_y);
		break;
	case planc_dnn_op_reshape: {
		o.x = link(planc_dnn_op_reshape_x), o.y = link(planc_dnn_op_reshape_y);
		Tensor x = run.tensors[o.x];
		const Tensor &y = run.tensors[o.y];
		std::swap(x.dims[2], x.dims[3]), std::swap(x.strides[2], x.strides[3]);
		if (x.dims != y.dims || x.strides != y.strides) return false;
		break;
	}
	case planc_dnn_op_pointwise:
		o.f = d->to(planc_dnn_op_pointwise_desc)->one(planc_dnn_pointwise_mode), o.axis = d->to(planc_dnn_op_pointwise_desc)->one(planc_dnn_pointwise_axis);
		o.x = link(planc_dnn_op_pointwise_x), o.b = link(planc_dnn_op_pointwise_b), o.t = link(planc_dnn_op_pointwise_t), o.y = link(planc_dnn_op_pointwise_y);
		break;
	default: return false;
	}
	run.ops.push_back(o);
	return true;
}

DNN(cudnnBackendExecute, (cudnnHandle_t h, cudnnBackendDescriptor_t p, cudnnBackendDescriptor_t v), {
	if (!is<cudnnContext>(h, ATTENTION) || !h->stream) return NOT_INITIALIZED;
	const Descriptor *plan = (Descriptor *)p;
	const Descriptor *pack = (Descriptor *)v;
	if (!plan->final || !pack->final || !plan->to(planc_dnn_plan_config)->way) return no(BAD_PARAM, "the plan is not finished, or not deterministic");
	std::map<int64_t, char *> at;
	const std::vector<uint64_t> &uids = pack->has.at(planc_dnn_pack_uids);
	const std::vector<uint64_t> &pointers = pack->has.at(planc_dnn_pack_pointers);
	for (size_t i = 0; i < uids.size(); i++) at[uids[i]] = (char *)pointers[i];
	Run run;
	for (uint64_t o : graphOf(plan)->has.at(planc_dnn_graph_ops))
		if (!add(run, (Descriptor *)o, at)) return no(BAD_PARAM, "an operation that is not emulated");
	for (Tensor &t : run.tensors)
		if (!t.within && (!t.at || (!t.constant && (uint64_t)t.at % 16))) return no(BAD_PARAM, "a tensor has no address or is not aligned");
	run.workspace = (char *)pack->one(planc_dnn_pack_workspace), run.scratch = needs(plan);
	Context *on = h->stream->context;
	std::string text = "stream " + std::to_string(h->stream->id) + ": attention of " + std::to_string(run.ops.size()) + " operations";
	if (loadsLate(on, "the plan of attention at " + std::to_string((uint64_t)plan))) return no(EXECUTION_FAILED, "the GPU program failed to execute");
	auto shared = std::make_shared<Run>(run);
	r = put(h->stream, text, [=] { Run own = *shared; return own.execute(on); });
})
