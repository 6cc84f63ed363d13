// Package gemm multiplies matrices on a CPU: float32, float64 and bfloat16, in plain Go or with the assembly
// of package asm.
//
// A problem is a matmul's operands and sizes. Its tiling says how it is divided into blocks that suit the
// caches. A packer copies the operands of a block into panels, and a splitter also splits float32s for AMX's
// tiles. A matmul runs these and calls the engine of the ISA in use, on one or more threads. The bits of an
// element depend only on its row and its column. Packed serves attention, which multiplies many rows by one
// packed operand.
package gemm
