// Package sass reads the machine code of compiled kernels (SASS) and counts the instructions that make a kernel slow.
//
// Start reading at [Parse], which reads what cuobjdump -sass prints. [Measure] counts a function's spills, its 2-byte
// stores next to 16-byte accesses, and the instructions of its inner loops. [Check] compares counts with a table of
// limits. Tests of cuda/kernels and codegen compile all kernels with nvcc and hold them to such tables.
package sass
