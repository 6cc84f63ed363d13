// NVRTC's functions, with our own prototypes. testdata/prototypes.c checks them against the real nvrtc.h.
#ifndef PLANC_NVRTC_H
#define PLANC_NVRTC_H

#include <stddef.h>

#ifdef PLANC_REAL_HEADERS
#include <nvrtc.h>
#else
typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;
#endif

enum { planc_nvrtc_ok = 0, planc_nvrtc_compilation = 6 };

// F(needed, result, name, parameters, arguments). The newest function exists since CUDA 11.2.
#define PLANC_NVRTC(F) \
	F(1, nvrtcResult, nvrtcVersion, (int *major, int *minor), (major, minor)) \
	F(1, const char *, nvrtcGetErrorString, (nvrtcResult result), (result)) \
	F(1, nvrtcResult, nvrtcCreateProgram, (nvrtcProgram *program, const char *source, const char *name, int headers, const char *const *texts, const char *const *names), (program, source, name, headers, texts, names)) \
	F(1, nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram *program), (program)) \
	F(1, nvrtcResult, nvrtcCompileProgram, (nvrtcProgram program, int count, const char *const *options), (program, count, options)) \
	F(1, nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram program, size_t *size), (program, size)) \
	F(1, nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram program, char *cubin), (program, cubin)) \
	F(1, nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram program, size_t *size), (program, size)) \
	F(1, nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram program, char *text), (program, text))

#define PLANC_NVRTC_FIELD(needed, result, name, params, args) result (*name) params;
struct planc_nvrtc { PLANC_NVRTC(PLANC_NVRTC_FIELD) };
extern struct planc_nvrtc planc_nvrtc; // filled by planc_bind_nvrtc

#define PLANC_NVRTC_CALL(needed, result, name, params, args) \
	static inline result planc_##name params { return planc_nvrtc.name args; }
PLANC_NVRTC(PLANC_NVRTC_CALL)

const char *planc_bind_nvrtc(void *library);

#endif
