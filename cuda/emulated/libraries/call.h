// How the emulated driver returns results.
#pragma once
#include "gpu.h"

// CALL(NAME, parameters, whether it needs a bound context, body): the body sets r or returns the result.
#define CALL(name, params, bound, ...)                                    \
	extern "C" CUresult name params {                                     \
		Held held;                                                        \
		int r = 0;                                                        \
		if (bound && !current) return INVALID_CONTEXT;                    \
		if (bound && current->lost) return current->lost;                 \
		__VA_ARGS__                                                       \
		eager();                                                          \
		return r;                                                         \
	}

// NEED(TYPE, variable, handle, KIND) is the object of a handle, which must be alive.
#define NEED(type, o, handle, kind)  \
	type *o = is<type>(handle, kind); \
	if (!o) return INVALID_HANDLE;

// spoil invalidates the capture of this thread, in which the call is not allowed.
static inline int spoil() {
	capturing->invalid = CAPTURE_INVALIDATED;
	return CAPTURE_UNSUPPORTED;
}
