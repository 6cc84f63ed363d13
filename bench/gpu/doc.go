// Package main implements scripts/gpu-check: all measurements on a machine with one NVIDIA GPU, CUDA's libraries and
// PyTorch, but no Go. docs/measured/METHOD.md says what each figure means.
//
//	gpu-check build DIR         compiles the programs of the parts into DIR; needs planc's source
//	gpu-check PART -dir DIR     runs a part: smoke, laws, kernels, sanitize, train, train2, train3, curves
//	gpu-check report -out DIR FILE...   writes pages from the results of parts
//
// A part is a list of checks, each with its own time limit (parts.go). A check runs in one or more other processes, so
// that a crash ends one check only. After each check the results are written, as JSON and as a page. Start in main.go.
// models.go lists the models, laws.go checks the programs that golden/laws/gpucheck_test.go builds, train.go and
// peer.py compare training with PyTorch, kernels.go compares kernels with themselves in f64 and with their floors,
// chains.go finds the fused groups that those programs launch, and chaintime.go times them.
//
// With -tiny all shapes are small enough for an emulated GPU; golden/laws/gpucheck_test.go runs it this way.
package main
