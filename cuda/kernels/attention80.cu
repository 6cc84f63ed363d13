// Attention on tensor cores of heads of 80, and its gradient.
#include "attention_kernels.cuh"

ATTENTION_KERNELS(80, 1, 32)
