// Package main is a laboratory for planc's CUDA kernels. It loads compiled kernels and runs them through gorgonia.org/cu,
// a binding of the CUDA driver that planc's programs do not use. It shares no code with planc's own driver layer, package
// cuda. So if a training program computes wrong results on a GPU, one run tells whether the kernel or the layer is the
// cause.
//
//	cudalab check DIR [TEST]    runs the kernels' tests on the GPU: each compares a kernel with the loop of the CPU
//	cudalab time DIR [KERNEL]   runs kernels at the sizes of training steps and prints error, time and GB/s
//	cudalab serve DIR FILE      serves the launches of a kernel file's tests; check starts it
//
// DIR is a folder that scripts/gpu-check unpacks: kernels/NAME.fatbin for each kernel file, and kernels.test, the tests
// of cuda/kernels. TEST is a regular expression as go test -run takes it, and KERNEL is a kernel's name.
//
// cu ends the process if there is no CUDA driver, and needs a C compiler and cuda.h of CUDA 12.0 to 12.9 to build.
package main
