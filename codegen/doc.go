// Package codegen prints a program as Go source through jennifer.
//
// [Go] is the entry. A function of the program becomes a Go function; an op becomes a call of a kernel, above it
// the op as planc's text form has it. Which call an op becomes is one row of [emitters]; element-wise chains
// become loops. Everything that needs thought is hand-written in the runtime; what is here decides nothing.
// Code for GPUs ([Target]) is the same text with other calls, of package runtime/gpu; [CUDA] prints the kernels of its
// element-wise chains. Package build, below, turns the source into a binary.
package codegen
