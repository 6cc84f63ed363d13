// NVRTC: it runs the emulated nvcc, which is in the same directory as the libraries.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
extern "C" {
#include "nvrtc.h"
}

#define PROTOTYPE(needed, result, name, params, args) extern "C" result name params;
PLANC_NVRTC(PROTOTYPE)

struct _nvrtcProgram {
	std::string name, cubin, log;
	std::map<std::string, std::string> files;
};

const char *nvrtcGetErrorString(nvrtcResult r) { return r == planc_nvrtc_compilation ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_INTERNAL_ERROR"; }
nvrtcResult nvrtcVersion(int *major, int *minor) { return *major = 13, *minor = 5, 0; }
nvrtcResult nvrtcCreateProgram(nvrtcProgram *to, const char *source, const char *name, int n, const char *const *texts, const char *const *names) {
	nvrtcProgram p = *to = new _nvrtcProgram();
	p->files[p->name = name] = source;
	for (int i = 0; i < n; i++) p->files[names[i]] = texts[i];
	return 0;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram *p) {
	delete *p;
	*p = nullptr;
	return 0;
}

static std::string slurp(const std::string &path) {
	std::ifstream in(path, std::ios::binary);
	return {std::istreambuf_iterator<char>(in), {}};
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int, const char *const *) {
	Dl_info here;
	char dir[] = "/tmp/planc-nvrtc-XXXXXX";
	if (!dladdr((void *)nvrtcCompileProgram, &here) || !mkdtemp(dir)) return 11;
	std::string lib = here.dli_fname, in = dir;
	for (auto &f : p->files) std::ofstream(in + "/" + f.first, std::ios::binary) << f.second;
	std::string command = "cd " + in + " && '" + lib.substr(0, lib.rfind('/')) + "/../bin/nvcc' -o out.cubin " + p->name + " >log 2>&1";
	int failed = system(command.c_str());
	p->cubin = slurp(in + "/out.cubin");
	p->log = slurp(in + "/log");
	if (system(("rm -rf " + in).c_str())) return 11;
	return failed ? planc_nvrtc_compilation : 0;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *n) { return *n = p->cubin.size(), 0; }
nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *to) { return memcpy(to, p->cubin.data(), p->cubin.size()), 0; }
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *n) { return *n = p->log.size() + 1, 0; }
nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *to) { return memcpy(to, p->log.c_str(), p->log.size() + 1), 0; }
