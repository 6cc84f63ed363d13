// NVRTC without a compiler, for tests: the cubin is the options, the headers and the source. Built as
// libnvrtc.so.13.
#include "fake.h"
#include "../nvrtc.h"

struct _nvrtcProgram { char text[4096], log[256]; };

#define CALL(name, params, ...) \
	nvrtcResult name params { \
		int r = told(#name); \
		if (!r) { __VA_ARGS__ } \
		return r; \
	}

const char *nvrtcGetErrorString(nvrtcResult r) { return r == 5 ? "NVRTC_ERROR_INVALID_OPTION" : "NVRTC_ERROR"; }
CALL(nvrtcVersion, (int *major, int *minor), *major = 13; *minor = 5;)
CALL(nvrtcCreateProgram, (nvrtcProgram *p, const char *source, const char *name, int n, const char *const *texts, const char *const *names),
	*p = calloc(1, sizeof **p);
	for (int i = 0; i < n; i++) strcat(strcat(strcat((*p)->text, names[i]), "="), texts[i]);
	strcat(strcat(strcat((*p)->text, name), "="), source);)
CALL(nvrtcDestroyProgram, (nvrtcProgram *p), free(*p); *p = NULL; say("destroyed");)
CALL(nvrtcCompileProgram, (nvrtcProgram p, int n, const char *const *options),
	for (int i = 0; i < n; i++) strcat(strcat(p->text, options[i]), " ");
	if (strstr(p->text, "wrong")) { strcpy(p->log, "k.cu(1): error: wrong\n"); r = planc_nvrtc_compilation; }
	if (strstr(p->text, "sm_none")) r = 5;)
CALL(nvrtcGetCUBINSize, (nvrtcProgram p, size_t *n), *n = strlen(p->text);)
CALL(nvrtcGetCUBIN, (nvrtcProgram p, char *to), memcpy(to, p->text, strlen(p->text));)
CALL(nvrtcGetProgramLogSize, (nvrtcProgram p, size_t *n), *n = strlen(p->log) + 1;)
CALL(nvrtcGetProgramLog, (nvrtcProgram p, char *to), strcpy(to, p->log);)
