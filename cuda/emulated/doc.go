// Package emulated is an NVIDIA machine without a GPU, for tests of whole programs: shared libraries under the names of
// the driver, cuBLASLt, cuDNN, NCCL, NVRTC and NVML that really execute, on host memory, and an nvcc that makes modules
// for them of the same .cu files, with the machine's C++ compiler and the header of cuda/kernels/emulate. An nvidia-smi
// says what planc asks it.
//
// Begin with [Install]: it puts the libraries and nvcc into a folder, and [Machine.Env] is the environment in which
// planc and a program find them. A program then runs as on a GPU, unchanged.
//
// What is put on a stream runs when the policy wants it (PLANC_EMULATED_ORDER, in libraries/schedule.cpp), and nothing
// but streams, events, graphs and communicators orders it: where an event is missing, numbers are wrong under one
// policy or the other. Ranks that differ in a collective, or wait for each other in different orders, end the process
// with a report (status 86), as does a program in which nothing moves for PLANC_EMULATED_PATIENCE seconds. Memory is
// NaN before it is written; its surroundings are guarded, and nobody may touch it once it is freed. PLANC_EMULATED_LOG
// names a file to which all that runs is written, and, where a device is given back, what was left over on it.
//
// Threads of a block run as in package emulate, in one of three orders, drawn for each launch. A kernel's fault makes
// the context fail as a GPU's does, with its reason on standard error.
//
// It says nothing of speed. Blocks of a grid, and kernels of two streams, never run at the same time, but one after the
// other. NCCL's ranks are goroutines of one process, and each has a device of its own; where PLANC_EMULATED_FAR names a
// folder that processes share, they are of several, of which PLANC_EMULATED_FIRST=2 sees devices from the third on.
// PLANC_EMULATED_BREAK=40 has the network break after so many calls of NCCL: one hangs, and its communicator tells an
// error. With PLANC_EMULATED_HANG=40 one hangs and nothing tells of it. cuBLASLt's products are exact to the rounding
// of their sums, of which a GPU chooses another order.
package emulated
