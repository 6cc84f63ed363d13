// Package emulated is an NVIDIA machine without a GPU, for tests of whole programs. It consists of shared
// libraries with the names of the driver, cuBLASLt, cuDNN, NCCL, NVRTC and NVML, which execute on host
// memory; and of an nvcc that builds modules for them from the same .cu files, with the machine's C++
// compiler and the header of cuda/kernels/emulate. Its nvidia-smi answers planc's queries.
//
// Begin with [Install], which puts the libraries and nvcc into a folder. [Machine.Env] is the environment
// in which planc and a program find them. A program then runs unchanged, as on a GPU.
//
// Enqueued work runs at a time that the policy chooses (PLANC_EMULATED_ORDER, in libraries/schedule.cpp).
// Only streams, events, graphs and communicators order it: if an event is missing, results are wrong under
// one of the policies. Some faults end the process with a report (status 86): ranks that disagree on a
// collective, ranks that wait for each other in different orders, and a program without progress for
// PLANC_EMULATED_PATIENCE seconds. Memory is NaN until it is written. It has guards around it, and must not
// be accessed after it is freed. PLANC_EMULATED_LOG names a file that logs all work, the begin of each
// device's first training step and, when a device is released, the resources that were not freed.
//
// The threads of a block run as in package emulate, in one of three orders that is drawn for each launch. A
// fault in a kernel fails the context as on a GPU, with its reason on standard error.
//
// The emulation says nothing about speed. Blocks of a grid, and kernels of two streams, never run
// concurrently. NCCL's ranks are goroutines of one process, each with its own device. If PLANC_EMULATED_FAR
// names a folder that processes share, ranks may be in several processes; PLANC_EMULATED_FIRST=2 makes a
// process see the devices from the third on. PLANC_EMULATED_BREAK=40 breaks the network after 40 calls of
// NCCL: one call hangs, and its communicator reports an error. With PLANC_EMULATED_HANG=40 one hangs
// without an error. cuBLASLt's GEMMs are exact up to the rounding of their sums, whose order differs from a
// GPU's. PLANC_EMULATED_EPILOGUES=8 makes it refuse epilogues unless all leading dimensions are multiples of 8.
// Its heuristic suggests three algorithms, which add in different orders. PLANC_EMULATED_TIMES=546111 are the
// milliseconds between two events after a GEMM by each of them, and by each if the epilogue sums the gradient of a
// bias; otherwise it is 1.
//
// Libraries connect ranks and load kernels at first use. A call fails that does so after the device's first
// training step has begun, because a GPU may then wait for work that waits for another rank. A step begins
// with the kernel that PLANC_EMULATED_STEP names.
package emulated
