// Package module holds the kernels of a program on one GPU. [New] finds them in the program, Set.Load loads all of
// them, and Set.Find returns one by its name. [AddArguments] checks and packs the arguments of a kernel of
// kernels.Table.
//
// A program that was built without nvcc contains sources. Those are compiled with NVRTC on the machine where it runs
// (compile.go). All files except this one have the build tags cuda and linux.
package module
