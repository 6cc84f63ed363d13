// cuDNN without a GPU, for tests: descriptors that store their attributes, and a heuristic that returns
// three plans: the first is nondeterministic, the second needs a large workspace, the third is usable. It
// computes nothing. Built as libcudnn.so.9.
#include "fake.h"
#include "../cudnn.h"

enum { BAD_PARAM = 2000 };

struct descriptor { int kind, way, final, set; };
static int open;

#define CALL(name, params, ...) \
	cudnnStatus_t name params { \
		int r = told(#name); \
		if (!r) { __VA_ARGS__ } \
		return r; \
	}

size_t cudnnGetVersion(void) { return getenv("PLANC_FAKE_CUDNN") ? atoi(getenv("PLANC_FAKE_CUDNN")) : 92600; }
const char *cudnnGetErrorString(cudnnStatus_t s) { return s == 3001 ? "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN" : "CUDNN_STATUS"; }
void cudnnGetLastErrorString(char *to, size_t n) { snprintf(to, n, "%s", "the fake was told so"); }
CALL(cudnnCreate, (cudnnHandle_t *h), *h = malloc(1);)
CALL(cudnnDestroy, (cudnnHandle_t h), say("descriptors of cuDNN left: %d", open); free(h);)
CALL(cudnnSetStream, (cudnnHandle_t h, cudaStream_t s), (void)h; if (!s) r = BAD_PARAM;)
CALL(cudnnBackendCreateDescriptor, (cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t *d),
	struct descriptor *x = calloc(1, sizeof *x); x->kind = kind; *d = x; open++;)
CALL(cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t d), free(d); open--;)
CALL(cudnnBackendSetAttribute, (cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type, int64_t n, const void *v), struct descriptor *x = d;
	x->set++;
	if (x->final || n < 1) r = BAD_PARAM;
	if (type == planc_dnn_of_descriptor)
		for (int64_t i = 0; i < n; i++)
			if (!((struct descriptor *const *)v)[i]->final) r = BAD_PARAM;
	if (what == planc_dnn_graph_ops) say("graph of %d operations", (int)n);
	if (what == planc_dnn_plan_config) x->way = (*(struct descriptor *const *)v)->way;
	if (what == planc_dnn_pack_uids) say("%d pointers", (int)n);)
CALL(cudnnBackendFinalize, (cudnnBackendDescriptor_t d), struct descriptor *x = d; x->final = x->set > 0; if (!x->final) r = BAD_PARAM;)
CALL(cudnnBackendGetAttribute, (cudnnBackendDescriptor_t const d, cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type, int64_t room, int64_t *n, void *v), (void)type; struct descriptor *x = d;
	switch (what) {
	case planc_dnn_heuristic_results:
		*n = 3;
		for (int i = 0; i < (room < 3 ? room : 3); i++) ((struct descriptor **)v)[i]->way = i, ((struct descriptor **)v)[i]->final = 1;
		break;
	case planc_dnn_config_engine: *n = !getenv("PLANC_FAKE_NO_ENGINE"); (*(struct descriptor **)v)->way = x->way; break;
	case planc_dnn_engine_notes: *n = 1; *(int *)v = x->way == 0 ? planc_dnn_nondeterministic : 0; break;
	case planc_dnn_plan_workspace: *n = 1; *(int64_t *)v = x->way == 1 ? 1 << 30 : 512; break;
	default: r = BAD_PARAM;
	})
CALL(cudnnBackendExecute, (cudnnHandle_t h, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack), (void)h;
	if (!((struct descriptor *)plan)->final || !((struct descriptor *)pack)->final) r = BAD_PARAM;
	say("attention by way %d", ((struct descriptor *)plan)->way);)
