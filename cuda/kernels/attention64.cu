// Attention on tensor cores of heads of 64, and its gradient.
#include "attention_kernels.cuh"

ATTENTION_KERNELS(64, 2, 64)
