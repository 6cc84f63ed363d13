// NCCL's functions, with our own prototypes. testdata/prototypes.c checks them against the real nccl.h.
#ifndef PLANC_NCCL_H
#define PLANC_NCCL_H

#include "driver.h"

#ifdef PLANC_REAL_HEADERS
#include <nccl.h>
#else
typedef int ncclResult_t, ncclDataType_t, ncclRedOp_t;
typedef struct ncclComm *ncclComm_t;
typedef struct { char internal[128]; } ncclUniqueId;
typedef struct planc_nccl_config ncclConfig_t;
typedef struct CUstream_st *cudaStream_t;
#endif

// The configuration in the layout of NCCL 2.17. It contains its size and version, so that later NCCLs fill
// in the rest.
struct planc_nccl_config {
	size_t size;
	unsigned int magic, version;
	int blocking, cgaClusterSize, minCTAs, maxCTAs;
	const char *netName;
	int splitShare;
};

enum {
	planc_nccl_ok = 0, planc_nccl_in_progress = 7, planc_nccl_unset = -2147483647 - 1,
	planc_nccl_magic = (int)0xcafebeef, planc_nccl_version = 21701
};

// F(needed, result, name, parameters, arguments). The needed functions exist since NCCL 2.18 or earlier,
// the others since 2.19.
#define PLANC_NCCL(F) \
	F(1, ncclResult_t, ncclGetVersion, (int *version), (version)) \
	F(1, ncclResult_t, ncclGetUniqueId, (ncclUniqueId *id), (id)) \
	F(1, ncclResult_t, ncclCommInitRankConfig, (ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config), (comm, ranks, id, rank, config)) \
	F(1, ncclResult_t, ncclCommSplit, (ncclComm_t comm, int color, int key, ncclComm_t *part, ncclConfig_t *config), (comm, color, key, part, config)) \
	F(1, ncclResult_t, ncclCommFinalize, (ncclComm_t comm), (comm)) \
	F(1, ncclResult_t, ncclCommDestroy, (ncclComm_t comm), (comm)) \
	F(1, ncclResult_t, ncclCommAbort, (ncclComm_t comm), (comm)) \
	F(1, ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *error), (comm, error)) \
	F(1, ncclResult_t, ncclCommCount, (const ncclComm_t comm, int *count), (comm, count)) \
	F(1, ncclResult_t, ncclCommUserRank, (const ncclComm_t comm, int *rank), (comm, rank)) \
	F(1, const char *, ncclGetErrorString, (ncclResult_t result), (result)) \
	F(1, const char *, ncclGetLastError, (ncclComm_t comm), (comm)) \
	F(1, ncclResult_t, ncclGroupStart, (void), ()) \
	F(1, ncclResult_t, ncclGroupEnd, (void), ()) \
	F(1, ncclResult_t, ncclAllReduce, (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream), (from, to, count, type, op, comm, stream)) \
	F(1, ncclResult_t, ncclReduceScatter, (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream), (from, to, count, type, op, comm, stream)) \
	F(1, ncclResult_t, ncclAllGather, (const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream), (from, to, count, type, comm, stream)) \
	F(1, ncclResult_t, ncclBroadcast, (const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream), (from, to, count, type, root, comm, stream)) \
	F(1, ncclResult_t, ncclSend, (const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream), (from, count, type, peer, comm, stream)) \
	F(1, ncclResult_t, ncclRecv, (void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream), (to, count, type, peer, comm, stream)) \
	F(0, ncclResult_t, ncclMemAlloc, (void **memory, size_t bytes), (memory, bytes)) \
	F(0, ncclResult_t, ncclMemFree, (void *memory), (memory)) \
	F(0, ncclResult_t, ncclCommRegister, (const ncclComm_t comm, void *memory, size_t bytes, void **handle), (comm, memory, bytes, handle)) \
	F(0, ncclResult_t, ncclCommDeregister, (const ncclComm_t comm, void *handle), (comm, handle))

#define PLANC_NCCL_FIELD(needed, result, name, params, args) result (*name) params;
struct planc_nccl { PLANC_NCCL(PLANC_NCCL_FIELD) };
extern struct planc_nccl planc_nccl; // filled by planc_bind_nccl; the needed functions are not NULL

#define PLANC_NCCL_CALL(needed, result, name, params, args) \
	static inline result planc_##name params { return planc_nccl.name args; }
PLANC_NCCL(PLANC_NCCL_CALL)

const char *planc_bind_nccl(void *library);

// planc_nccl_configure returns the configuration of a communicator that can be aborted, whose calls do not
// block. ctas is the number of its blocks on the GPU; 0: NCCL decides.
static inline struct planc_nccl_config planc_nccl_configure(int ctas) {
	int u = planc_nccl_unset, n = ctas > 0 ? ctas : u;
	struct planc_nccl_config c = {sizeof c, (unsigned)planc_nccl_magic, planc_nccl_version, 0, u, n, n, NULL, u};
	return c;
}

#endif
