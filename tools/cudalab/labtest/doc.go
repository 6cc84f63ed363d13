// Package labtest tests the kernel laboratory on an emulated GPU. It is not in the folder of the laboratory, because a
// test binary there would need CUDA's driver to start.
package labtest
