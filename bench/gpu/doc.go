// Package main is what scripts/gpu-check runs: all that is to be measured on a machine with one NVIDIA GPU, CUDA's
// libraries and PyTorch, and no Go. docs/measured/METHOD.md says what each figure means.
//
//	gpu-check build DIR         compiles the programs that the parts run into DIR, where planc's source is
//	gpu-check PART -dir DIR     runs a part: smoke, laws, kernels, sanitize, train, train2, train3, curves
//	gpu-check report -out DIR FILE...   makes pages of parts' results
//
// A part is a list of checks, each with a time of its own (parts.go). A check is a process or several, never this one,
// so that a crash ends one check; after each, the part's results are written, as JSON and as a page. Begin in main.go;
// models.go has what is trained, laws.go judges the programs that golden/laws/gpucheck_test.go builds, train.go and peer.py
// are the benchmark beside PyTorch, kernels.go holds kernels against themselves in f64 and against their floors,
// chains.go finds what fused groups those programs launch, and chaintime.go times them.
//
// With -tiny everything has shapes that an emulated GPU trains in seconds; golden/laws/gpucheck_test.go runs it so.
package main
